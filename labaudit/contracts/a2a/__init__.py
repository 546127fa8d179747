"""A2A packets to canonical events with a bounded `handoff` object (K1-A v1, frozen).

    errors       the five kinds of failure                 version      which A2A versions are read
    packet       bytes to the fields that were sent        handoff      the one positive rule
    discovery    card visibility from attributes           convert      one packet to one event
    stream       a file of packets                         evidence     a trial's packets to a2a_events.jsonl
    matrix       the cases N1-N7                           review       the six questions, computed
    meaning      may imply / must not imply, as data       folder_check all of it over a folder

The evidence is visibility only: that a surface was seen in a packet, never that a handoff was right or successful.
"""

from labaudit.contracts.a2a.convert import convert_packet, event_bytes
from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.evidence import A2aEvidence, events_from_packets
from labaudit.contracts.a2a.packet import Options, RawPayload

__all__ = [
    "A2aEvidence",
    "AdapterError",
    "Options",
    "RawPayload",
    "convert_packet",
    "event_bytes",
    "events_from_packets",
]
