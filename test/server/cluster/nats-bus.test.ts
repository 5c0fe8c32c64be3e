/** The bus over a real nats-server: what one node publishes all hear, and a server that is gone for a while is found again. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NatsBus } from '../../../server/cluster/nats-bus.ts'
import { systemClock } from '../../../server/kernel/core/clock.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { connectNats, knownFault } from '../../../storage/replicated/nats.ts'
import { eventually } from '../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../support/nats.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`the bus over NATS${howTo}`, () => {
  let servers: NatsServers
  const opened: NatsBus[] = []
  const logged: string[] = []
  beforeEach(async () => {
    servers = await NatsServers.start(1)
  })
  afterEach(async () => {
    for (const bus of opened.splice(0)) await bus.close()
    logged.length = 0
    await servers.stop()
  })

  function open(node: string, cluster = 'main'): { bus: NatsBus; heard: string[] } {
    const heard: string[] = []
    const log = createLogger('info', { write: (line) => void logged.push(line) })
    const bus = new NatsBus({ cluster, node, nats: { servers: servers.urls }, clock: systemClock(), log })
    opened.push(bus)
    bus.open((bytes) => heard.push(new TextDecoder().decode(bytes)))
    return { bus, heard }
  }

  /** Publishes until it is heard, as what is published without a connection is lost. */
  async function said(bus: NatsBus, text: string, heard: readonly string[]): Promise<void> {
    await eventually(() => {
      bus.publish(new TextEncoder().encode(text))
      expect(heard).toContain(text)
    })
  }

  test('carries what is published to all nodes of the cluster, also to the one that says it', async () => {
    const [one, two, foreign] = [open('n1'), open('n2'), open('n1', 'other')]
    await said(one.bus, 'from n1', two.heard)
    await said(two.bus, 'from n2', one.heard)
    await said(one.bus, 'again', one.heard)
    await said(foreign.bus, 'from elsewhere', foreign.heard)
    expect(new Set([...one.heard, ...two.heard])).toEqual(new Set(['from n1', 'from n2', 'again']))
    expect(new Set(foreign.heard)).toEqual(new Set(['from elsewhere']))
  })

  test('says once what is known of the version of the server', async () => {
    const { bus, heard } = open('n1')
    await said(bus, 'hello', heard)
    const connection = await connectNats({ servers: servers.urls }, 'test')
    const fault = knownFault(connection.info?.version ?? '')
    await connection.close()
    await servers.kill(0)
    await servers.restart(0)
    await said(bus, 'again', heard)
    expect(logged.filter((line) => line.includes('or newer'))).toHaveLength(fault === undefined ? 0 : 1)
    expect(logged.join('')).toContain(fault ?? '')
  })

  test('sends what was published last before it closes', async () => {
    const [one, two] = [open('n1'), open('n2')]
    await said(one.bus, 'hello', two.heard)
    one.bus.publish(new TextEncoder().encode('I leave'))
    await one.bus.close()
    await eventually(() => expect(two.heard).toContain('I leave'))
    // After that it says nothing.
    one.bus.publish(new TextEncoder().encode('never'))
    await said(two.bus, 'good-bye', two.heard)
    expect(two.heard).not.toContain('never')
  })

  test('finds a server again that was gone, and keeps nothing for it', async () => {
    const [one, two] = [open('n1'), open('n2')]
    await said(one.bus, 'before', two.heard)
    await servers.kill(0)
    await eventually(() => expect(logged.join('')).toContain('the nats-servers cannot be used'))
    for (let message = 0; message < 100; message++) one.bus.publish(new TextEncoder().encode('lost'))
    await servers.restart(0)
    await said(one.bus, 'after', two.heard)
    expect(two.heard).not.toContain('lost')
  })

  test('may be opened and closed without a server', async () => {
    await servers.kill(0)
    const { bus } = open('n1')
    await eventually(() => expect(logged.join('')).toContain('cannot connect to a nats-server'))
    await bus.close()
  })
})
