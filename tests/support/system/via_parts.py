"""Several of VIA's tests in one run, one after the other on the same cards, which are as new before each."""

from importlib import import_module


async def parts(cluster, spec):
    """The results of `spec["parts"]` by name: name -> ("module:coroutine", settings). All have programs of `config`."""
    found = {}
    for name, (entry, settings) in spec["parts"].items():
        module, _, coroutine = entry.partition(":")
        point = getattr(import_module(f"support.system.{module}"), coroutine)
        found[name] = await point(cluster, {**settings, "config": spec["config"]})
    return found
