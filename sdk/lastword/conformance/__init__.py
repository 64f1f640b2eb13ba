"""The conformance suite: the contract's vectors, played to any client or server, and what came of it.

``_cases`` selects, ``_run`` plays and lays the baseline over it, ``_results`` has the words that all of it shares. ``core``,
``client`` and ``server`` know how one kind of vector is played and judged, and not of each other; ``show`` knows only results.
"""
