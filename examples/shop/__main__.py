"""`python -m examples.shop`: open the shop until SIGINT or SIGTERM."""

import argparse
import asyncio
import signal
from pathlib import Path

from aiohttp import web

from examples.shop.app import build_app


async def serve(host: str, port: int, port_file: Path | None) -> None:
    """Serve the shop; say the address on stdout, and the port in `port_file` when it is open."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(build_app(), shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        if port_file is not None:
            await asyncio.to_thread(_write, port_file, str(bound))
        print(f"The shop is open at http://{host}:{bound}/", flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


def _write(path: Path, text: str) -> None:
    """Write a file so that whoever sees it sees all of it."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m examples.shop", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes any free port")
    parser.add_argument("--port-file", type=Path, help="write the port here once it is open")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.host, arguments.port, arguments.port_file))


if __name__ == "__main__":
    main()
