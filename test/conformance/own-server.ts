/** Cinnabar itself as the server under test: any free ports, a directory that is thrown away, two users that are no admins. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PasswordHasher } from '../../auth/password.ts'
import { makeVerifiers } from '../../auth/verifiers.ts'
import { createLogger } from '../../server/core/log.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { startServer } from '../../server/start/server.ts'
import type { Credentials } from './stage.ts'

/** The fewest that are allowed: a run logs in hundreds of times. */
const SCRAM_ITERATIONS = 4096
/** The binary logarithm of bcrypt's cost, for the same reason. */
const BCRYPT_ROUNDS = 4

export interface OwnServer {
  readonly tcp: string
  readonly ws: string
  /** A pair of users of their own, so that runs can go on beside each other. */
  users(name: string): Promise<{ user: Credentials; other: Credentials }>
  stop(): Promise<void>
}

export async function startOwnServer(): Promise<OwnServer> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-conformance-'))
  const base = defaultConfig()
  const loopback = { host: '127.0.0.1', port: 0 }
  const config = {
    ...base,
    producer: { name: 'n1', dataDir: directory },
    listen: { ...base.listen, tcp: loopback, http: loopback },
    gmetric: { ...base.gmetric, listen: loopback, listenNamed: true },
    auth: { ...base.auth, scramIterations: SCRAM_ITERATIONS },
  }
  const hasher = new PasswordHasher({ rounds: BCRYPT_ROUNDS })
  const log = createLogger('silent')
  const server = await startServer({ config, log, hasher, adminPassword: 'the admin takes no part' })
  const { accounts } = server.parts.producer
  const add = async (name: string): Promise<Credentials> => {
    const secret = `the secret of ${name}`
    const verifiers = await makeVerifiers(secret, hasher, SCRAM_ITERATIONS)
    accounts.add({ tenant: 'default', name, role: 'consumer', ...verifiers, loopbackOnly: false })
    return { user: name, secret }
  }
  return {
    tcp: `tcp://127.0.0.1:${server.tcp?.port}`,
    ws: `ws://127.0.0.1:${server.http?.port}/monitor`,
    users: async (name) => ({ user: await add(`${name}-user`), other: await add(`${name}-other`) }),
    async stop() {
      await server.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
