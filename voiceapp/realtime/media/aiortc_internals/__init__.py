"""The only package that reaches inside aiortc and aioice.

Each file names the private attributes that it uses in `names.py`; the versions are pinned, and a test looks for each
name. Everything else of a call (ICE, DTLS, SCTP, negotiation) stays with the libraries.
"""
