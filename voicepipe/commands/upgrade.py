"""`voicepipe upgrade`: a PoP starts its program anew, as it is installed now, and the new process takes the calls."""

from voicepipe.commands.remote_server import RemoteServer


def run(pop: RemoteServer) -> int:
    """Have a PoP upgrade, and wait until the new process takes calls. Raises ConfigError: it does not; then the PoP
    goes on as before."""
    print("the new process loads its engines; meanwhile the PoP goes on as before", flush=True)
    done = pop.asked("POST", "/v1/upgrade")
    left = f"{done['calls']} calls go on" if done["calls"] != 1 else "1 call goes on"
    print(f"process {done['pid']} (version {done['version']}) takes the calls now; {left} in the process before, which "
          "ends with the last of them")  # fmt: skip
    return 0
