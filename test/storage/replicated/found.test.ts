/** How a log is founded: by one node, with whatever stands on the nats-servers from before. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Log } from '../../../storage/replicated/log.ts'
import type { LogOptions } from '../../../storage/replicated/options.ts'
import type { RoleOptions } from '../../../storage/replicated/role.ts'
import { ReplicatedStore } from '../../../storage/replicated/store.ts'
import { inThisThread } from '../../contracts/replicated-stores.ts'
import { EventLog } from '../../contracts/store-batch.ts'
import { NatsServers, natsMissing } from '../../support/nats.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`founding a log${howTo}`, () => {
  let servers: NatsServers
  beforeAll(async () => {
    servers = await NatsServers.start(1)
  })
  afterAll(() => servers.stop())

  let root = ''
  let cluster = ''
  const stores: ReplicatedStore[] = []
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodes-'))
    cluster = `t-${randomUUID().slice(0, 8)}`
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) {
      await store.close()
      await store.disconnect()
    }
    rmSync(root, { recursive: true, force: true })
  })

  const logOptions = (node: string): LogOptions => ({
    cluster,
    node,
    servers: servers.urls,
    replicas: 1,
    maxBytes: 2 ** 26,
  })

  function storeOf(node: string): ReplicatedStore {
    const store = new ReplicatedStore({
      store: { directory: join(root, node) },
      log: logOptions(node),
      wallMs: () => 1_700_000_000_000,
    })
    stores.push(store)
    return store
  }

  test('a stream that was made for a log and has no record is none', async () => {
    const log = await Log.connect(logOptions('n2'))
    await log.create(1)
    await log.close()
    const store = storeOf('n1')
    expect(await store.end(10_000)).toMatchObject({ log: 0 })
    await store.found()
    await store.open(new EventLog())
    expect(await store.end(10_000)).toMatchObject({ log: 1, last: 3 })
  })

  test('is refused if another node has founded a log since that was decided', async () => {
    await storeOf('n1').found()
    await expect(storeOf('n2').found(false, 0)).rejects.toMatchObject({ code: 'DEPOSED' })
  })

  test('keeps the last log, and removes those before it', async () => {
    const store = storeOf('n1')
    for (let log = 1; log <= 4; log++) {
      await store.found()
      await store.open(new EventLog())
      await store.close()
    }
    const connection = await connect({ servers: servers.urls })
    const names: string[] = []
    for await (const name of (await jetstreamManager(connection)).streams.names(`cin.${cluster}.log.*`))
      names.push(name)
    await connection.close()
    expect(names.sort()).toEqual([`CIN_${cluster}_3`, `CIN_${cluster}_4`])
  })

  test('the roles of a node that founds one connect first to the nats-server that has just answered', async () => {
    const roles: RoleOptions[] = []
    const options = { store: { directory: join(root, 'n1') }, log: logOptions('n1'), wallMs: () => 0 }
    const store = new ReplicatedStore(options, (role) => {
      roles.push(role)
      return inThisThread(role)
    })
    stores.push(store)
    await store.end(60_000)
    await store.found()
    expect(roles.map((role) => `nats://${role.log.first}`)).toEqual(servers.urls)
  })
})
