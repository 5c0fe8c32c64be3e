/**
 * Many small servers in one process, to be consumed by another: real ones, but for a store in memory. Told `{emit: N}`, each gives
 * the value N to each of its series; told `cut`, the process cuts all of its connections at once.
 */
import { randomBytes } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { mkdtempSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { PasswordHasher } from '../../../auth/password.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { defaultConfig } from '../../../server/start/config.ts'
import { startServer } from '../../../server/start/server.ts'
import { MemoryStore } from '../../support/memory-store/store.ts'
import { PushSensor } from '../../support/test-sensor.ts'

export interface Load {
  readonly servers: number
  readonly series: number
  /** Where each server has a directory. */
  readonly directory: string
  readonly password: string
}

export type LoadTold = { readonly kind: 'ready'; readonly ports: readonly number[] } | { readonly kind: 'emitted' }

const { servers, series, directory, password }: Load = JSON.parse(process.argv[2] ?? '{}')
const sockets = new Set<Socket>()
subscribe('net.server.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
})

const base = defaultConfig()
const hasher = new PasswordHasher({ rounds: 4 })
const sensors: PushSensor[] = []
const ports: number[] = []
for (let i = 0; i < servers; i++) {
  const store = new MemoryStore()
  const open = store.open.bind(store)
  // All databases in memory have the same one.
  const secret = new Uint8Array(randomBytes(32))
  store.open = async (events) => ({ ...(await open(events)), secret })
  const server = await startServer({
    config: {
      ...base,
      history: { ...base.history, keepMs: 0 },
      producer: { name: `load${i}`, dataDir: mkdtempSync(join(directory, 'load-')) },
      listen: { ...base.listen, tcp: { host: '127.0.0.1', port: 0 }, http: undefined },
      gmetric: { ...base.gmetric, listen: undefined, listenNamed: false },
      auth: { ...base.auth, scramIterations: 4096 },
    },
    store,
    hasher,
    log: createLogger('error'),
    adminPassword: password,
    diskSpace: () => ({ sizeBytes: 2 ** 40, freeBytes: 2 ** 40 }),
    sensors: (hub) => sensors.push(new PushSensor(hub, 'load.')),
  })
  ports.push(server.tcp?.port ?? 0)
}

function emit(value: number): void {
  const time = Date.now() * 1_000
  let next = 0
  const step = (): void => {
    const sensor = sensors[next++]
    if (sensor === undefined) {
      tell({ kind: 'emitted' })
      return
    }
    for (let i = 0; i < series; i++) sensor.push(`load.m${i}`, { type: BasicType.UINT32, value }, time)
    setImmediate(step)
  }
  step()
}

function tell(told: LoadTold): void {
  process.send?.(told)
}

process.on('message', (message: 'cut' | { readonly emit: number }) => {
  if (message === 'cut') for (const socket of sockets) socket.destroy()
  else emit(message.emit)
})
process.on('disconnect', () => process.exit())
tell({ kind: 'ready', ports })
