/** A consumer of a few lines, and a server that is killed twenty times under it: nothing is lost, nothing comes twice. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { encodeMetadata, encodeText } from '../../protocol/gmetric/encode.ts'
import { balance, ledgerOf } from '../support/records.ts'
import { freeTcpPort, freeUdpPort, PASSWORD, ServerProcess } from '../support/server-process.ts'

const KILLS = 20
const VALUES = 150
const HOST = { address: '10.0.0.1', name: 'n1', spoofed: true, label: '10.0.0.1:n1' } as const

let server: ServerProcess
let child: ChildProcess | undefined
let udpPort: number
let tcpPort: number

beforeEach(async () => {
  udpPort = await freeUdpPort()
  tcpPort = await freeTcpPort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { tcp: tcpPort })
  await server.start()
})
afterEach(async () => {
  child?.kill('SIGKILL')
  await server.remove()
})

it('survives twenty kills of the server with every stored value handled once', { timeout: 180_000 }, async () => {
  const file = join(server.directory, 'handled.txt')
  const program = new URL('./consumers/counter.ts', import.meta.url).pathname
  child = spawn(process.execPath, ['--import', 'tsx', program, `tcp://127.0.0.1:${tcpPort}`, file], {
    env: { ...process.env, CINNABAR_PASSWORD: PASSWORD },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  const channel = Number(printed)
  const sender = createSocket('udp4')
  const metadata = { name: 'counter', type: 'uint32', units: '', slope: 3, tmax: 60, dmax: 0, extra: [] } as const
  const send = (packet: Uint8Array) => sender.send(packet, udpPort, '127.0.0.1')

  let sent = 0
  for (let kill = 0; kill < KILLS; kill++) {
    send(encodeMetadata(HOST, 'counter', metadata as never))
    for (let i = 0; i < VALUES; i++) send(encodeText(HOST, 'counter', String(sent++)))
    // All that was sent is stored before the kill; how much of it was handled and committed is left to chance.
    const { peer } = await server.login()
    let ledger = await ledgerOf(peer, channel, 1)
    for (let seq = 2; ledger.accepted < sent || ledger.unstored > 0; seq++) ledger = await ledgerOf(peer, channel, seq)
    expect(balance(ledger)).toBe(0)
    await server.end('SIGKILL')
    await server.start()
  }

  const { peer } = await server.login()
  let ledger = await ledgerOf(peer, channel, 1)
  for (let seq = 2; ledger.committed < sent; seq++) ledger = await ledgerOf(peer, channel, seq)
  const handled = readFileSync(file, 'utf8').trimEnd().split('\n').map(Number)
  expect(handled).toEqual(Array.from({ length: sent }, (_, number) => number))
  sender.close()
})
