/** Which version of QMF is spoken with a broker, by what it answers and broadcasts. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { VersionChoice } from '../../../../server/wings/qmf/version-choice.ts'
import { eventually } from '../../../support/eventually.ts'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { message } from '../../../support/qmf/recording.ts'
import { QmfServer } from './server.ts'

describe('what is configured', () => {
  it.each([1, 2] as const)('is spoken, whatever the broker does: %i', (version) => {
    const choice = new VersionChoice(version)
    choice.heard('agent.1.0', 0)
    expect([choice.tick(10_000), choice.isSilent()]).toEqual([false, false])
    expect(choice.refused({ code: 404, text: 'not-found: Exchange not found: qmf.default.direct' })).toBe(false)
    choice.ended()
    choice.ended()
    expect(choice.version).toBe(version)
  })
})

describe('a free choice', () => {
  let choice: VersionChoice

  beforeEach(() => {
    choice = new VersionChoice('auto')
  })

  it('is v2 at first, and without any broadcasts', () => {
    expect(choice.tick(100_000)).toBe(false)
    choice.ended()
    expect(choice.version).toBe(2)
  })

  it('is v2 where both are broadcast, in any order', () => {
    choice.heard('agent.1.0', 0)
    choice.heard('broker', 100)
    expect(choice.tick(10_000)).toBe(false)
    choice.ended()
    choice.heard('broker', 0)
    choice.heard('agent.1.0', 100)
    expect([choice.tick(10_000), choice.version]).toEqual([false, 2])
  })

  it('is v1 where nothing else is broadcast, and stays so as long as that is heard', () => {
    choice.heard('agent.1.10', 0)
    expect(choice.tick(10_000)).toBe(false)
    choice.heard('agent.1.0', 0)
    expect([choice.tick(2_000), choice.tick(3_000), choice.version]).toEqual([false, true, 1])
    choice.ended()
    choice.heard('agent.1.0', 0)
    expect(choice.tick(10_000)).toBe(false)
    choice.ended()
    expect(choice.version).toBe(1)
    choice.ended()
    expect(choice.version).toBe(2)
  })

  it('is v1 of a broker without v2', () => {
    expect(choice.refused({ code: 403, text: 'unauthorized-access: qmf.default.direct' })).toBe(false)
    expect(choice.refused({ code: 404, text: 'not-found: Exchange not found: qmf.default.direct' })).toBe(true)
    expect([choice.version, choice.isSilent()]).toEqual([1, false])
  })

  it.each([
    'unauthorized-access: ACL denied exchange bind request from monitor@QPID (Broker.cpp:1610)',
    'unauthorized-access: monitor@QPID cannot publish to qmf.default.topic with routing-key console.request.agent_locate',
  ])('is v1 of a broker whose access control refuses v2: %s', (text) => {
    expect([choice.refused({ code: 403, text }), choice.version]).toEqual([true, 1])
  })

  it('is progress once, until a connection works', () => {
    const taken = () => {
      choice.isSilent()
      const { isProgress } = choice
      choice.ended()
      choice.ended()
      return isProgress
    }
    expect([taken(), taken(), taken()]).toEqual([true, false, false])
    choice.worked()
    expect([taken(), taken()]).toEqual([true, false])
  })
})

describe('a server', () => {
  let broker: ScriptedBroker
  let server: QmfServer

  beforeEach(async () => {
    broker = await ScriptedBroker.listen()
  })
  afterEach(async () => {
    await server.stop()
    await broker.close()
  })

  async function start(speaksMaps: boolean): Promise<void> {
    broker.speaksMaps = speaksMaps
    server = await QmfServer.start({ b1: broker.port }, 'version = "auto"')
  }

  /** By v1, after so many connections; time goes on until then. */
  async function speaksOne(connections: number): Promise<void> {
    for (let second = 0; broker.connections < connections && second < 60; second++) {
      await server.pass(1)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(() => expect(broker.asked).toContain('G queue'))
    await server.up()
    expect(server.status().detail).not.toContain('by QMF v2')
    expect(broker.connections).toBe(connections)
  }

  it('speaks v2 with a broker that answers by it and broadcasts both', async () => {
    await start(true)
    await server.up()
    const before = Number(server.status().counters['transfers'])
    broker.beatMaps()
    broker.publish('console.heartbeat.1.0', HEARTBEAT)
    await eventually(() => expect(server.status().counters['transfers']).toBe(before + 2))
    await server.pass(5)
    expect(server.status()).toMatchObject({ state: 'listening', detail: expect.stringContaining(' by QMF v2') })
    expect(broker.connections).toBe(1)
  })

  it('speaks v1 with one that does not answer', async () => {
    await start(false)
    await speaksOne(2)
  })

  it('speaks v1 with one that broadcasts nothing else', async () => {
    await start(true)
    await server.up()
    const before = Number(server.status().counters['transfers'])
    broker.publish('console.heartbeat.1.0', HEARTBEAT)
    await eventually(() => expect(server.status().counters['transfers']).toBe(before + 1))
    await speaksOne(2)
  })
})

const HEARTBEAT = message('h', 0, Buffer.from('18E9E51DDD83347C', 'hex'))
