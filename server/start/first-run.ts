/**
 * The first start with an empty database: an `admin` whose password is shown once, and `local`, the command line's own
 * user, whose secret lies in the data directory and is good only over loopback and only by scram-sha-256. Each node of a
 * cluster makes a user of its own, `local@<node>`, when it leads for the first time: their secrets are files of the nodes.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { DEFAULT_TENANT } from '../../auth/identity.ts'
import type { PasswordHasher } from '../../auth/password.ts'
import { ADMIN_ROLE } from '../../auth/permissions.ts'
import { checkNewPassword, makeSecretVerifier, makeVerifiers } from '../../auth/verifiers.ts'
import { DATABASE_FILE } from '../../storage/store.ts'
import type { AuditLog } from '../kernel/accounts/audit/log.ts'
import type { Users } from '../kernel/accounts/users.ts'
import { configDirectoryOf } from '../kernel/config/paths.ts'
import { localUserOf } from '../kernel/controls/users.ts'
import type { Logger } from '../kernel/core/log.ts'
import { DEFAULT_DATA_DIR } from './config.ts'

export const ADMIN_USER = 'admin'
/** The secret; in a cluster a second line has the user that it is of. */
export const SECRET_FILE = 'admin.secret'

/** Where a server is likely to have its data: under systemd, and in a clone. */
const KNOWN_PLACES = [
  '/var/lib/cinnabar',
  join(dirname(createRequire(import.meta.url).resolve('cinnabar/package.json')), 'data'),
]

export interface DataPlace {
  readonly dataDir: string
  /** The file that was read; undefined if there is none. */
  readonly configFile: string | undefined
}

/**
 * Warns if the server is about to begin with an empty database although one of the places where it may be has some: a server that
 * is started in another directory would be another one, without a word. Of these places is the current directory, where a relative
 * `data_dir` of the file started in earlier versions; and those that are known, if nobody has said where the data is.
 */
export function warnOfOtherData(
  { dataDir, configFile }: DataPlace,
  log: Pick<Logger, 'warn'>,
  places: readonly string[] = KNOWN_PLACES,
): void {
  const here = resolve(dataDir)
  const has = (place: string): boolean => existsSync(join(place, DATABASE_FILE))
  if (has(here)) return
  const directory = configDirectoryOf(configFile)
  const within = relative(directory, here)
  const before = within.startsWith('..') ? [] : [resolve(within)]
  const known = here === join(directory, DEFAULT_DATA_DIR) ? places : []
  const other = [...before, ...known].find((place) => place !== here && has(place))
  if (other === undefined) return
  log.warn(
    { dataDir: here, other },
    `this server begins with an empty database in ${here}, but there is one in ${other}: ` +
      `if you meant that one, stop the server and start it with --data ${other}`,
  )
}

export interface FirstRunOptions {
  readonly accounts: Users
  readonly audit: Pick<AuditLog, 'record'>
  readonly hasher: PasswordHasher
  readonly iterations: number
  readonly dataDir: string
  /** The name of this node of a cluster; undefined without one. */
  readonly node: string | undefined
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
  readonly log: Pick<Logger, 'warn'>
  /** CINNABAR_ADMIN_PASSWORD; empty or missing: one is made. */
  readonly adminPassword: string | undefined
}

/** Makes what is missing. Gives the admin's password if it was made just now and nobody else knows it. */
export async function firstRun(options: FirstRunOptions): Promise<string | undefined> {
  const { accounts } = options
  const shown = accounts.size === 0 ? await addAdmin(options) : undefined
  await makeLocalUser(options)
  return shown
}

async function makeLocalUser(options: FirstRunOptions): Promise<void> {
  const { accounts, dataDir, node, stored, log } = options
  const name = localUserOf(node)
  const file = join(dataDir, SECRET_FILE)
  const local = accounts.find(DEFAULT_TENANT, name)
  if (local !== undefined && userOfSecret(file) === name) return
  if (local !== undefined && !local.loopbackOnly) {
    const message =
      'the command line cannot log in on this node, because its user has the name of another one: ' +
      'remove that user with `cinnabar user remove`, and restart this node'
    log.warn({ user: name, node }, message)
    return
  }
  const secret = randomBytes(32).toString('base64url')
  const scram = await makeSecretVerifier(secret)
  // Anew: writing into a file that is there would keep its mode.
  rmSync(file, { force: true })
  record(options, name, local === undefined ? 'added' : 'secret made anew')
  const verifiers = { bcrypt: undefined, scram }
  if (local !== undefined) accounts.setVerifiers(local, verifiers)
  else accounts.add({ tenant: DEFAULT_TENANT, name, role: ADMIN_ROLE, ...verifiers, loopbackOnly: true })
  // A file whose verifier was never stored would be good for nothing, and nobody would make another one.
  await stored()
  writeFileSync(file, node === undefined ? `${secret}\n` : `${secret}\n${name}\n`, { mode: 0o600, flag: 'wx' })
}

/** Whose secret the file has; undefined if there is no file. */
function userOfSecret(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const [, user = ''] = readFileSync(file, 'utf8').split('\n')
  return user || localUserOf(undefined)
}

async function addAdmin(options: FirstRunOptions): Promise<string | undefined> {
  const { accounts, hasher, iterations, adminPassword: given } = options
  const password = given || randomBytes(15).toString('base64url')
  checkNewPassword(password)
  const verifiers = await makeVerifiers(password, hasher, iterations)
  record(options, ADMIN_USER, 'added')
  accounts.add({ tenant: DEFAULT_TENANT, name: ADMIN_USER, role: ADMIN_ROLE, ...verifiers, loopbackOnly: false })
  return given ? undefined : password
}

/** In the batch of the change. Nobody asked for it but the start. */
function record({ audit }: FirstRunOptions, object: string, outcome: string): void {
  audit.record({ action: 'admin', address: '', object, outcome, detail: 'at the start of the server' })
}
