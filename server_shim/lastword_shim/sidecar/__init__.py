"""The same middleware in front of any OpenAI-compatible server: ``lastword shim --upstream URL``.

``command`` reads the options, ``serve`` runs the server, ``proxy`` is the application that the middleware goes round,
``engine`` what the middleware knows of who answers there, ``pool``, ``connection`` and ``http1`` are the HTTP client,
``websocket`` passes WebSockets on.
"""
