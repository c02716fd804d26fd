"""Third-party SMSC on a free loopback port: accepts and prints every message, and sends a delivery receipt.

Prints one JSON object per line: first {"port"}, then {"bound"}, {"to", …, "hex"} and {"receipt"}, the status with which
the client answered the receipt. Messages to numbers that end in 00 are undeliverable.
"""

import asyncio
import json
import socket

import smpp34


def report(**event):
    print(json.dumps(event), flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def send_receipt(esme, submitted, message_id):
    stat, err = ("UNDELIV", "001") if submitted.destination_addr.endswith("00") else ("DELIVRD", "000")
    text = (
        f"id:{message_id} sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 "
        f"stat:{stat} err:{err} text:"
    )
    answer = await esme.deliver_sm(
        submitted.source_addr, text.encode(), source_addr=submitted.destination_addr, esm_class=4
    )
    report(receipt=answer.command_status)


async def main():
    port = free_port()
    server = smpp34.Server("127.0.0.1", port, system_id="SMSC")
    await server.start()
    report(port=port)
    esmes, count = {}, 0
    while True:
        event = await server.next()
        if isinstance(event, smpp34.Esme):
            esmes[event.session_id] = event
            report(bound=event.system_id)
        elif isinstance(event, smpp34.SubmitSmEvent):
            count += 1
            message_id = f"id_{count}"
            event.accept(message_id)
            report(
                **{"from": event.source_addr},
                to=event.destination_addr,
                dataCoding=event.data_coding,
                hex=bytes(event.short_message).hex(),
            )
            if event.registered_delivery:
                await send_receipt(esmes[event.session_id], event, message_id)


asyncio.run(main())
