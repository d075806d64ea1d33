"""The only package that reaches inside aiortc and aioice.

Its tests name the private attributes that it uses, and look for each in the pinned versions. Everything else of a call
(ICE, DTLS, SCTP, negotiation) stays with the libraries.
"""
