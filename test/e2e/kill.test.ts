/** The real gmetric, a consumer that comes and goes, a server that is killed: nothing that was stored is lost. */

import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { command } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { times } from '../support/long.ts'
import type { RawPeer } from '../support/raw-peer.ts'
import { balance, decoded, ledgerOf, ledgerWhen } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const GMETRIC = '/usr/bin/gmetric'
const KILLS = times({ short: 1, long: 3 })
const installed = existsSync(GMETRIC)
if (!installed)
  console.warn('skipped: no gmetric; install it with `apt-get install --no-install-recommends ganglia-monitor`')

// Skipped only where the real program is missing; the message above says how to install it.
describe.skipIf(!installed)(
  `values of the real gmetric, with the consumer cut off and the server killed, ${KILLS} times`,
  () => {
    let server: ServerProcess
    let sent = 0
    let conf = ''

    beforeAll(async () => {
      const port = await freePort()
      server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${port}"\n`)
      conf = join(server.directory, 'gmetric.conf')
      writeFileSync(conf, `udp_send_channel {\n  host = 127.0.0.1\n  port = ${port}\n}\n`)
      await server.start()
    })
    afterAll(() => server.remove())

    function send(count: number): void {
      for (let i = 0; i < count; i++) {
        execFileSync(GMETRIC, ['-c', conf, '-n', 'counter', '-v', String(sent++), '-t', 'uint32'])
      }
    }

    /** Reads until the value with that number is there. */
    async function readTo(peer: RawPeer, number: number, seen: Map<number, number>, order: number[]): Promise<void> {
      let last = -1
      while (last < number) {
        const message = await peer.next()
        if (message.kind === 'closed') throw new Error('closed')
        if (message.kind === 'gap') expect(message.reason).toBe(5)
        if (message.kind !== 'value' || message.transaction === 0) continue
        last = decoded(message).value as number
        const before = seen.get(message.transaction)
        if (before !== undefined) expect(before).toBe(last)
        seen.set(message.transaction, last)
        order.push(message.transaction)
      }
    }

    it('comes with every value that was stored, in order, no id for two values, and a ledger that balances', async () => {
      const seen = new Map<number, number>()
      let { peer } = await server.login()
      peer.send(command.defChannel(1))
      const { result: channel } = await peer.response(1)
      peer.send(command.setChannel(2, channel), command.collect(3, 'gmetric.counter'))
      await peer.response(2)
      const { result: metric } = await peer.response(3)
      peer.send(command.subscribe(4, metric))
      expect((await peer.response(4)).status).toBe(0)

      for (let round = 0; round < KILLS; round++) {
        send(10)
        await readTo(peer, sent - 1, seen, [])
        const committed = [...seen.keys()].sort((a, b) => a - b)[Math.floor(seen.size / 2)] as number
        peer.send(command.commitThrough(10 + round, committed))
        expect((await peer.response(10 + round)).status).toBe(0)
        peer.destroy()

        send(10)
        const watcher = (await server.login()).peer
        // gmetric has left its datagrams in the kernel; the server has them all, on disk, a moment later.
        await ledgerWhen(watcher, channel, ({ accepted, unstored }) => accepted >= sent && unstored === 0)
        await server.end('SIGKILL')

        await server.start()
        peer = (await server.login()).peer
        peer.send(command.setChannel(5, channel))
        expect((await peer.response(5)).status).toBe(0)
        const order: number[] = []
        await readTo(peer, sent - 1, seen, order)
        expect(order).toEqual([...order].sort((a, b) => a - b))
        expect(order.filter((transaction) => transaction <= committed)).toEqual([])
        // Every number that was ever sent is there once, under one id.
        expect([...seen.values()].sort((a, b) => a - b)).toEqual(Array.from({ length: sent }, (_, number) => number))
        expect(balance(await ledgerOf(peer, channel))).toBe(0)
      }
      peer.send(command.stop(300, metric))
      expect((await peer.response(300)).status).toBe(0)
      expect(balance(await ledgerOf(peer, channel))).toBe(0)
      peer.destroy()
    })
  },
)
