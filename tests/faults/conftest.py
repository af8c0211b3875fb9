"""How much is killed: `pytest tests/faults/test_serve_kill.py --kills 2000`."""


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=200, help="Random SIGKILLs of `octo-sync serve` under load.")
    parser.addoption("--chaos-seeds", type=int, default=5, help="Seeds of the chaos over sockets.")
    parser.addoption("--every-call", action="store_true", help="SIGKILL at each system call, not at some of them.")
