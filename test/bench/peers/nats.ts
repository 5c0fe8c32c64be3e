/** NATS JetStream: a stream in a file store, a durable pull consumer that acknowledges each message by itself. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { ServerUnderTest } from '../processes/server-under-test.ts'
import { type Peer, versionOf } from './contender.ts'

const PROGRAM = 'nats-server'

const CONFIGURED = {
  always: { setting: 'sync_interval: always', about: 'fsync before each PubAck' },
  default: { setting: '', about: 'default sync_interval: fsync every 2 minutes' },
} as const

export function nats(sync: keyof typeof CONFIGURED, values: number): Peer {
  const { setting, about } = CONFIGURED[sync]
  const config = (directory: string, port: number): string =>
    `listen: "127.0.0.1:${port}"\njetstream { store_dir: ${JSON.stringify(directory)}\n${setting} }\n`
  return {
    name: `nats jetstream, ${sync}`,
    settings: `file store, limits stream, ${about}; PubAcks awaited; the consumer's +ACKs have no answer, waited for by CONSUMER.INFO`,
    values,
    missing() {
      const version = versionOf(PROGRAM, '-v')
      if (version === undefined) return `${PROGRAM} is not installed`
      return refuses(config) ? `${version} does not know ${setting}` : undefined
    },
    async start(directory) {
      const port = await freePort()
      const file = join(directory, 'nats.conf')
      writeFileSync(file, config(directory, port))
      const server = await ServerUnderTest.start({ program: PROGRAM, args: ['-c', file], port })
      return {
        server,
        publisher: { end: 'nats-publisher', port, values },
        consumer: { end: 'nats-consumer', port, values },
      }
    },
  }
}

/** The server tests its configuration itself. */
function refuses(config: (directory: string, port: number) => string): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-'))
  try {
    const file = join(directory, 'nats.conf')
    writeFileSync(file, config(directory, 4222))
    execFileSync(PROGRAM, ['-t', '-c', file], { stdio: 'ignore' })
    return false
  } catch {
    return true
  } finally {
    rmSync(directory, { recursive: true })
  }
}
