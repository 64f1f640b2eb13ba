// The caller of a library: has the answer so far in hand, and leaves or cancels when the case says so.

// What the caller has in hand; `members` are those of outcome.json that the library has a notion of.
class Heard {
  text = "";
  members = {};
  controller = new AbortController();

  constructor(call) {
    this.wanted = call.cancel?.after_events;
  }

  get signal() {
    return this.controller.signal;
  }

  // An event was taken in; true if the caller leaves after it.
  eventOver() {
    if (this.wanted === undefined || (this.wanted -= 1) > 0) return false;
    this.controller.abort();
    return true;
  }
}

// Make the case's calls with one client, one after the other; what the last one came to. `read` reads an answer into what
// was heard. If it ends without an exception, the call is completed: a library that says nothing has said that all is well.
export async function make({ call, ...server }, open, read, failure) {
  const client = open(server, call);
  let result;
  for (let time = 0; time < call.repeat; time++) {
    if (time > 0) await new Promise((done) => setTimeout(done, 50)); // fetch gives a socket back a moment after the answer
    const heard = new Heard(call);
    const timer = call.cancel?.after_ms && setTimeout(() => heard.controller.abort(), call.cancel.after_ms);
    let word = { outcome: "completed", code: null };
    try {
      await read(client, call, heard);
    } catch (error) {
      word = failure(error);
    }
    clearTimeout(timer);
    if (heard.signal.aborted) word = { outcome: "cancelled", code: "cancelled" };
    result = { ...word, text: heard.text, ...heard.members };
  }
  return result;
}
