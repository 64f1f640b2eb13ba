"""The same middleware in front of any OpenAI-compatible server: ``lastword shim --upstream URL``.

``command`` reads the options, ``serve`` runs the server, ``proxy`` is the application that the middleware goes round,
``pool``, ``connection`` and ``http1`` are its HTTP client, ``websocket`` passes WebSockets on.
"""
