/**
 * The first start with an empty database: an `admin` whose password is shown once, and `local`, the command line's own
 * user, whose secret lies in the data directory and is good only over loopback and only by scram-sha-256.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { DEFAULT_TENANT } from '../../auth/identity.ts'
import type { PasswordHasher } from '../../auth/password.ts'
import { ADMIN_ROLE } from '../../auth/permissions.ts'
import { checkNewPassword, makeSecretVerifier, makeVerifiers } from '../../auth/verifiers.ts'
import { DATABASE_FILE } from '../../storage/sqlite/database.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Users } from '../accounts/users.ts'
import { LOCAL_USER } from '../controls/users.ts'
import type { Logger } from '../core/log.ts'
import { DEFAULT_DATA_DIR } from './config.ts'

export const ADMIN_USER = 'admin'
export const SECRET_FILE = 'admin.secret'

/** Where a server is likely to have its data: under systemd, and in a clone. */
const KNOWN_PLACES = [
  '/var/lib/cinnabar',
  join(dirname(createRequire(import.meta.url).resolve('cinnabar/package.json')), 'data'),
]

/**
 * Warns if the server is about to begin with an empty database because nobody has said where the data is, and one of the
 * places where it may be has some: a server that is started in another directory would be another one, without a word.
 */
export function warnOfOtherData(
  { dataDir }: { readonly dataDir: string },
  log: Pick<Logger, 'warn'>,
  places: readonly string[] = KNOWN_PLACES,
): void {
  const here = resolve(dataDir)
  const has = (place: string): boolean => existsSync(join(place, DATABASE_FILE))
  if (dataDir !== DEFAULT_DATA_DIR || has(here)) return
  const other = places.find((place) => place !== here && has(place))
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
  /** CINNABAR_ADMIN_PASSWORD; empty or missing: one is made. */
  readonly adminPassword: string | undefined
}

/** Makes what is missing. Gives the admin's password if it was made just now and nobody else knows it. */
export async function firstRun(options: FirstRunOptions): Promise<string | undefined> {
  const { accounts, dataDir } = options
  const shown = accounts.size === 0 ? await addAdmin(options) : undefined
  const file = join(dataDir, SECRET_FILE)
  const local = accounts.find(DEFAULT_TENANT, LOCAL_USER)
  if (local !== undefined && existsSync(file)) return shown
  const secret = randomBytes(32).toString('base64url')
  const scram = await makeSecretVerifier(secret)
  // Anew: writing into a file that is there would keep its mode.
  rmSync(file, { force: true })
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  record(options, LOCAL_USER, local === undefined ? 'added' : 'secret made anew')
  const verifiers = { bcrypt: undefined, scram }
  if (local !== undefined) accounts.setVerifiers(local, verifiers)
  else accounts.add({ tenant: DEFAULT_TENANT, name: LOCAL_USER, role: ADMIN_ROLE, ...verifiers, loopbackOnly: true })
  return shown
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
