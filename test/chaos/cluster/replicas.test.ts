/** That differences between the files of nats-servers are found, with files that nats-server has written. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Log } from '../../../storage/replicated/log.ts'
import { eventually } from '../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../support/nats.ts'
import { compareReplicas, storedRecords } from './replicas.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
const differing = (count: number) => ({ 'places that nats-servers have differently': count })

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`what nats-servers have on their disks${howTo}`, () => {
  const root = mkdtempSync(join(tmpdir(), 'replicas-'))
  let servers: NatsServers
  afterEach(async () => {
    await servers.stop()
    rmSync(root, { recursive: true, force: true })
  })

  test('is compared record by record', async () => {
    servers = await NatsServers.start(1)
    const append = async (cluster: string, count: number): Promise<void> => {
      const log = await Log.connect({ cluster, node: 'n1', servers: servers.urls, replicas: 1, maxBytes: 2 ** 26 })
      try {
        await log.create(1)
        log.open(1)
        for (let last = 0; last < count; last++)
          await log.append({ kind: last === 0 ? 'epoch' : 'batch', epoch: 1, bytes: Buffer.of(last) }, last)
      } finally {
        await log.close()
      }
    }
    const streams = join(servers.storeDirectory(0), 'jetstream', '$G', 'streams')
    const copy = async (name: string, log: string, count: number): Promise<string> => {
      await eventually(() => expect(storedRecords(join(streams, log, 'msgs')).size).toBe(count))
      cpSync(join(streams, log), join(root, name, 'jetstream', '$G', 'streams', 'CIN_main_1'), { recursive: true })
      return join(root, name)
    }
    await append('one', 3)
    const one = await copy('one', 'CIN_one_1', 3)
    // Each record has a random number, so all of them differ from those of another log.
    await append('other', 2)
    const other = await copy('other', 'CIN_other_1', 2)
    expect(compareReplicas([one, one])).toEqual(differing(0))
    expect(compareReplicas([one, other])).toEqual(differing(2))
    expect(compareReplicas([other, one, one])).toEqual(differing(2))
  })
})
