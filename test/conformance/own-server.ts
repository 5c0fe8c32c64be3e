/** Cinnabar itself as the server under test: any free ports, a directory that is thrown away, users that are no admins. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PasswordHasher } from '../../auth/password.ts'
import { makeVerifiers } from '../../auth/verifiers.ts'
import { createLogger } from '../../server/kernel/core/log.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { startServer } from '../../server/start/server.ts'
import { Authority, type Issued } from '../support/certificates.ts'
import { parseScript } from './script.ts'
import type { Credentials } from './stage.ts'
import { Run, type TargetOptions } from './target.ts'

/** The fewest that are allowed: a run logs in hundreds of times. */
const SCRAM_ITERATIONS = 4096
/** The binary logarithm of bcrypt's cost, for the same reason. */
const BCRYPT_ROUNDS = 4
const ADMIN = { user: 'admin', secret: 'the admin takes no part' }
/** What the scripts need beyond the defaults: the audit log, and to be called. */
const ROLE = 'kit'
const rules = [
  ['COLLECT', 'producer.audit'],
  ...['tcp', 'tls', 'ws', 'wss', 'gmetric'].map((scheme) => ['DEF_CHANNEL', `${scheme}://127.0.0.1:*`]),
] as const

export interface OwnServer {
  readonly tcp: string
  readonly tls: string
  readonly ws: string
  readonly wss: string
  /** What its certificate is of, and the one of the kit; and who issues others that it does not know. */
  readonly issued: Issued
  /** A pair of users of their own, so that runs can go on beside each other. */
  users(name: string): Promise<TargetOptions & { user: Credentials; other: Credentials }>
  /** The same with a client certificate, which takes longer to make than most scripts to play. */
  certified(name: string): Promise<TargetOptions>
  stop(): Promise<void>
}

export async function startOwnServer(): Promise<OwnServer> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-conformance-'))
  const file = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const authority = await Authority.make()
  const issued = await authority.server()
  const ca = file('ca.pem', authority.cert)
  const base = defaultConfig()
  const loopback = { host: '127.0.0.1', port: 0 }
  const config = {
    ...base,
    producer: { name: 'n1', dataDir: join(directory, 'data') },
    listen: { ...base.listen, tcp: loopback, http: loopback, tls: loopback, https: loopback },
    tls: { ...base.tls, cert: file('server.pem', issued.cert), key: file('server.key', issued.key), clientCa: ca },
    dial: { allow: rules.flatMap(([, object]) => (object.includes('://') ? [object] : [])), ca },
    quota: { ...base.quota, dialsPerMinute: 0 },
    gmetric: { ...base.gmetric, listen: loopback, listenNamed: true },
    auth: { ...base.auth, scramIterations: SCRAM_ITERATIONS },
  }
  const hasher = new PasswordHasher({ rounds: BCRYPT_ROUNDS })
  const log = createLogger('silent')
  const server = await startServer({ config, log, hasher, adminPassword: ADMIN.secret })
  const { accounts } = server.parts.producer
  const tcp = `tcp://127.0.0.1:${server.tcp?.port}`
  for (const [command, object] of rules) {
    await execute(tcp, 'role.allow', { role: ROLE, command, object })
  }
  const add = async (name: string): Promise<Credentials> => {
    const secret = `the secret of ${name}`
    const verifiers = await makeVerifiers(secret, hasher, SCRAM_ITERATIONS)
    accounts.add({ tenant: 'default', name, role: ROLE, ...verifiers, loopbackOnly: false })
    return { user: name, secret }
  }
  const users = async (name: string) => {
    const user = await add(`${name}-user`)
    const token = `cnb_${randomBytes(32).toString('base64url')}`
    await execute(tcp, 'token.add', { user: user.user, hash: createHash('sha256').update(token).digest('hex') })
    return {
      ...{ user, other: await add(`${name}-other`), token, ca: authority.cert },
      dial: { host: '127.0.0.1', port: 0, certificate: issued },
    }
  }
  return {
    tcp,
    tls: `tls://127.0.0.1:${server.tls?.port}`,
    ws: `ws://127.0.0.1:${server.http?.port}/monitor`,
    wss: `wss://127.0.0.1:${server.https?.port}/monitor`,
    issued,
    users,
    certified: async (name) => {
      const pair = await users(name)
      return { ...pair, certificate: await authority.client(pair.user.user) }
    },
    async stop() {
      await server.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** An EXECUTE by the admin, as a script. */
async function execute(address: string, control: string, texts: Readonly<Record<string, string>>): Promise<void> {
  const args = Object.entries(texts).map(([name, text]) => `"${name}" STRING "${text}"`)
  const script = `title: ${control}
clause: 10

login A
A> LEN EXECUTE 00000001 "${control}" ${args.length.toString(16).padStart(8, '0')} ${args.join(' ')}
A< LEN RESPONSE 00000001 OK {r:id}
A< LEN {r} {_:u64} {_:u64} REC 00000003 "outcome" STRING "ok" {_:rest}
`
  const { result, failure, why } = await (await Run.begin(address, 'tcp', { user: ADMIN })).play(
    parseScript(`${control}.txt`, script),
  )
  if (result !== 'ok') throw new Error(`${control}: ${why ?? failure?.message}`)
}
