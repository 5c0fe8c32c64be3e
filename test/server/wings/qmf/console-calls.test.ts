/** Calls of methods: the recorded ones with their recorded replies, and every way to go wrong. */
import { describe, expect, it } from 'vitest'
import type { QmfValue, SchemaMethod } from '../../../../protocol/qmf/types.ts'
import { capturedConclusions } from '../../../support/qmf/capture.ts'
import { ConsolePeer, done } from './console-peer.ts'
import { tableOf } from './recorded.ts'

const BROKER = '0-0-1-0-2'
const { key, methods } = tableOf('broker')

function method(name: string): SchemaMethod {
  return methods.find((candidate) => candidate.name === name) as SchemaMethod
}

function echo(peer: ConsolePeer, args: readonly QmfValue[] = [1, 'hello cinnabar'], timeoutMs?: number) {
  return peer.console.call(BROKER, key, method('echo'), args, timeoutMs)
}

const sequenceOf = (peer: ConsolePeer) => peer.take()[0]?.message.sequence ?? 0

describe('a call', () => {
  it('goes to the agent of the object and resolves with the recorded reply', async () => {
    const peer = new ConsolePeer().ready()
    const reply = echo(peer)
    expect(peer.bodies.flat().map(({ to, message }) => [to, message.op])).toEqual([['agent.1.0', 'M']])
    peer.serve()
    const [recorded] = capturedConclusions().filter(({ kind, name }) => kind === 'method' && name === 'echo')
    const { status, text, out } = recorded as { status: number; text: string; out: { sequence: number; body: string } }
    expect(await reply).toEqual({ status, text, arguments: [out.sequence, out.body] })
    void peer.console.call('0-1-3-77-9', key, method('getLogLevel'), [])
    expect(peer.take()[0]?.to).toBe('agent.3.77')
  })

  it('resolves with the recorded failure', async () => {
    const peer = new ConsolePeer().ready()
    const reply = peer.console.call(BROKER, key, method('create'), ['nonsense', 'x', new Map(), false])
    peer.serve()
    expect(await reply).toEqual({ status: 7, text: 'unknown object type: nonsense', arguments: [] })
  })

  it('that nobody answers is given up when its own time is over, and a late reply is dropped', async () => {
    const peer = new ConsolePeer().ready()
    const [soon, later] = [echo(peer, [1, 'a'], 3_000), echo(peer)]
    const sequence = sequenceOf(peer)
    peer.pass(3)
    expect(await soon).toBe('timeout')
    expect(peer.counters.unanswered).toBe(1)
    peer.tell({ op: 'z', sequence, code: 0, text: 'OK' })
    expect(peer.counters.unexpected).toBe(1)
    peer.pass(7)
    expect(await later).toBe('timeout')
  })

  it('is not answered by another sequence, nor by what is no reply', async () => {
    const peer = new ConsolePeer().ready()
    const reply = echo(peer, [1, 'a'], 5_000)
    const sequence = sequenceOf(peer)
    peer.tell({ op: 'm', sequence: sequence + 1, status: 1, text: 'UnknownObject', arguments: [] })
    peer.tell({ op: 'p', sequence, packageName: 'x' })
    peer.pass(5)
    expect(await reply).toBe('timeout')
    expect([peer.counters.unexpected, peer.counters.unanswered]).toEqual([2, 1])
  })

  it('whose reply is cut off is known to be answered', async () => {
    const peer = new ConsolePeer().ready()
    const reply = echo(peer)
    const cut = Buffer.from('AM2m0000\0\0\0\0\0\x02OK\0', 'latin1')
    cut.writeUInt32BE(sequenceOf(peer), 4)
    peer.deliver(cut)
    expect(await reply).toBe('unreadable')
    expect(peer.counters.malformed).toBe(1)
  })

  it('that ends without a reply is as good as unreadable', async () => {
    const peer = new ConsolePeer().ready()
    const reply = echo(peer)
    peer.tell(done(sequenceOf(peer)))
    expect(await reply).toBe('unreadable')
  })

  it('resolves with nothing when the connection ends, and afterwards', async () => {
    const peer = new ConsolePeer().ready()
    const reply = echo(peer)
    peer.closed('320 forced')
    expect([await reply, await echo(peer)]).toEqual([undefined, undefined])
  })

  it('with arguments that do not fit is not sent', async () => {
    const peer = new ConsolePeer().ready()
    expect(await echo(peer, ['not a number', 'x'])).toMatchObject({ status: 4, arguments: [] })
    expect(await echo(peer, [1])).toMatchObject({ status: 4 })
    const long = await echo(peer, [1, 'x'.repeat(65_530)])
    expect(long).toMatchObject({ status: 4, text: expect.stringContaining('a broker takes 65536') })
    expect([peer.bodies, peer.counters.malformed]).toEqual([[], 0])
  })

  it('goes past what waits, but only so many are under way', async () => {
    const peer = new ConsolePeer({ limits: { calls: 40 } }).ready()
    const replies = Array.from({ length: 41 }, () => echo(peer))
    expect(peer.bodies.flat()).toHaveLength(40)
    expect(await replies[40]).toBe('full')
    peer.serve()
    expect(await replies[39]).toMatchObject({ status: 0 })
    const next = echo(peer)
    peer.serve()
    expect(await next).toMatchObject({ status: 0 })
  })
})
