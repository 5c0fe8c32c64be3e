/** The thread of a role ends when the role does, whatever the client of NATS leaves open. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ReplicatedStore } from '../../../storage/replicated/store.ts'
import { EventLog } from '../../contracts/store-batch.ts'

/** How long a nats-server may take to answer here. */
const ANSWER_MS = 50

let directory = ''
/** Takes connections and says nothing, as the machine of a nats-server that is frozen or cut off. */
let silent: Server
const taken: Socket[] = []
let store: ReplicatedStore

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'nodes-'))
  silent = createServer((socket) => taken.push(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const servers = [`nats://127.0.0.1:${port}`]
  store = new ReplicatedStore({
    store: { directory },
    log: { cluster: 'silent', node: 'n1', servers, replicas: 1, maxBytes: 2 ** 26, timeoutMs: ANSWER_MS },
    wallMs: () => 0,
  })
})

afterEach(() => {
  for (const socket of taken.splice(0)) socket.destroy()
  silent.close()
  rmSync(directory, { recursive: true, force: true })
})

it('ends a follower although its connection is still being made', async () => {
  const followed = store.follow({ onPlace: () => {}, onObstacle: () => {} }, new AbortController().signal)
  await expect(followed).rejects.toMatchObject({ code: 'UNREACHABLE' })
  expect(taken.length).toBeGreaterThan(0)
})

it('ends a leader although its connection is still being made', async () => {
  await expect(store.open(new EventLog())).rejects.toMatchObject({ code: 'UNREACHABLE' })
  expect(taken.length).toBeGreaterThan(0)
  await store.close()
})
