package io.lastword.openai;

import java.util.concurrent.Executor;

/** Runs each piece of work on a daemon thread of its own, so that none keeps a process alive. */
enum DaemonThreads implements Executor {
  /** For work that waits for an answer. */
  CHECK("lastword-openai"),
  /** For work that reads a body. */
  READ("lastword-openai-body");

  private final String title;

  DaemonThreads(String title) {
    this.title = title;
  }

  @Override
  public void execute(Runnable work) {
    Thread thread = new Thread(work, title);
    thread.setDaemon(true);
    thread.start();
  }
}
