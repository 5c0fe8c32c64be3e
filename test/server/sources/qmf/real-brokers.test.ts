/** Brokers as operators run them: with access control, other consoles, pauses, and without broadcasts. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { QmfServer } from './server.ts'

let broker: ScriptedBroker
let server: QmfServer

beforeEach(async () => {
  broker = await ScriptedBroker.listen()
})
afterEach(async () => {
  await server.stop()
  await broker.close()
})

async function start(more = ''): Promise<void> {
  server = await QmfServer.start({ b1: broker.port }, more)
  await server.up()
}

describe('at the broker', () => {
  it('a connection shows its product, version, platform, program and process', async () => {
    await start()
    const [client] = broker.clients as [Buffer]
    const text = (name: string) => {
      const at = client.indexOf(name) + name.length + 1
      expect(client[at - 1]).toBe(0x95)
      return client.subarray(at + 2, at + 2 + client.readUInt16BE(at)).toString()
    }
    expect(text('product')).toBe('cinnabar')
    expect(text('version')).toMatch(/^\d+\.\d+/)
    expect(text('platform')).toBe(process.platform)
    expect(text('qpid.client_process')).toBe('cinnabar')
    const pid = client.indexOf('qpid.client_pid\x21') + 'qpid.client_pid\x21'.length
    expect(client.readInt32BE(pid)).toBe(process.pid)
  })
})
