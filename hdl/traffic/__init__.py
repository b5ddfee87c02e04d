"""Traffic sources, sinks and measurement in RTL: load that Python sets up once and reads out once.

`config`; `ports` (set-up port, broadcast signals, address map, declared registers); `packet` (the synthetic
packet); `random` (random numbers, exponential draws); `pattern` (destinations); `generator` (when packets are
born), `sender` (source queues, link), `source`; `checker`, `statistics`, `credit_return`, `sink`; `node`
(source, sink and port of a node); `measurement` (warm-up, window, drain, verdict).
"""
