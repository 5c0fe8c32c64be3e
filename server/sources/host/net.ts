/**
 * /proc/net/dev. Two lines of headings name the columns, which differ between kernels (before 2.1 there are no
 * bytes); a large counter may follow the colon without a space. Names are those of this network namespace.
 */
import { sumOf, uint64, words } from './numbers.ts'

type NetField = 'received_bytes' | 'sent_bytes' | 'received_packets' | 'sent_packets' | 'receive_errors' | 'send_errors'

/** Counters since the interface appeared. */
export type NetIo = Readonly<Record<NetField, bigint | undefined>>

const LOOPBACK = 'lo'

export function parseNetDev(text: string): ReadonlyMap<string, NetIo> {
  const interfaces = new Map<string, NetIo>()
  let received: readonly string[] = []
  let sent: readonly string[] = []
  for (const line of text.split('\n')) {
    const headings = line.split('|')
    if (headings.length === 3) {
      received = words(headings[1] ?? '')
      sent = words(headings[2] ?? '')
      continue
    }
    // An alias has a colon in its name (eth0:1), counters never have.
    const colon = line.lastIndexOf(':')
    const name = line.slice(0, Math.max(0, colon)).trim()
    if (name === '') continue
    const counters = words(line.slice(colon + 1))
    const count = (group: readonly string[], heading: string, before: number) => {
      const column = group.indexOf(heading)
      return column < 0 ? undefined : uint64(counters[before + column])
    }
    interfaces.set(name, {
      received_bytes: count(received, 'bytes', 0),
      sent_bytes: count(sent, 'bytes', received.length),
      received_packets: count(received, 'packets', 0),
      sent_packets: count(sent, 'packets', received.length),
      receive_errors: count(received, 'errs', 0),
      send_errors: count(sent, 'errs', received.length),
    })
  }
  return interfaces
}

/** All interfaces together, without the loopback. */
export function totalNetIo(interfaces: ReadonlyMap<string, NetIo>): NetIo {
  const outside = [...interfaces].filter(([name]) => name !== LOOPBACK).map(([, io]) => io)
  return {
    received_bytes: sumOf(outside.map((io) => io.received_bytes)),
    sent_bytes: sumOf(outside.map((io) => io.sent_bytes)),
    received_packets: sumOf(outside.map((io) => io.received_packets)),
    sent_packets: sumOf(outside.map((io) => io.sent_packets)),
    receive_errors: sumOf(outside.map((io) => io.receive_errors)),
    send_errors: sumOf(outside.map((io) => io.send_errors)),
  }
}
