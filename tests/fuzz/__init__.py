"""Fuzzers: what strangers, callers and models send is mutated, and no input may crash, stall or fill voicepipe.

A module `targets/NAME.py` is one protocol. It has `TARGETS`, a sequence of `Target` (see `target.py`), and imports only
what it needs. It is found by itself. What a target promises:

* `run(data)` does with `data` what production does with what came off the wire, in production's own functions. It takes
  any bytes. An exception that the real caller of these functions handles is caught inside `run`; every other one is a
  finding.
* It cleans up: nothing of one input is there when the next one begins, except where the target means to show that
  shared state stays bounded. It starts no process, opens no file and sends nothing.
* It is deterministic: no real clock, no randomness that changes what is executed. Async code runs in virtual time
  (`tests.support.virtual_time.run`), so waiting costs nothing.
* Valid inputs stand in `corpus/NAME/`, one a file, or come from `seeds`. `generate(random)` makes new ones from a
  grammar, for protocols in which a random byte is thrown away by the first check.

What counts as a finding: an exception, more than 100 ms of processor time (`limit_s`, of the whole process; tried
again, so that a slow machine is none), memory that grows with the number of inputs, and the death of the process.
Each is minimised and kept in `findings/NAME/`. The suite replays those files and runs a slice of every target
(`test_fuzz.py`); `make fuzz` runs `INPUTS` in all, on two processes.

    make fuzz                                    a million inputs over all targets
    make fuzz INPUTS=20000 ARGS="sip sdp"        of these targets alone
    make fuzz ARGS="--seed 7"                    other inputs; the same seed makes the same ones
    make fuzz ARGS="sip --replay FILE"           one input, with the traceback that it causes
"""
