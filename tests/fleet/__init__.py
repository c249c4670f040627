"""Several PoPs, directories and NATS servers as processes of their own: what callers notice when parts fail.

`python -m tests.fleet` (`make chaos`) starts them, places calls as clients of a directory do, breaks one thing at a
time, and has a checker read the history of all calls. Where this machine allows network namespaces, each process is a
host of its own, and a router in user space delays, loses and cuts what they send each other. `test_quick.py` is the
short form: the same on loopback.
"""
