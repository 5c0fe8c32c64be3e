/** `token.*`: opaque tokens of users [MON 11]. Whoever will use one makes it; only its hash ever comes here. */
import { formatIdentity } from '../../auth/identity.ts'
import { covers, formatScope, parseScope, type Scope } from '../../auth/permissions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { TokenRow } from '../../storage/store.ts'
import type { Tokens } from '../accounts/tokens.ts'
import type { Users } from '../accounts/users.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import {
  administered,
  judged,
  nameOf,
  reaches,
  records,
  tenantParameter,
  text,
  textOf,
  userParameter,
} from './administration.ts'
import { type Control, failed, type Given, ok } from './control.ts'

export interface TokenControlsOptions {
  readonly accounts: Users
  readonly tokens: Tokens
  readonly clock: Pick<Clock, 'wallMs'>
  /** Resolves when everything changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { STRING, UINT32, UINT64 } = BasicType
const MAX_NAME_CHARACTERS = 64
const MAX_SECONDS = 100 * 365 * 86_400
const tokenParameter = { name: 'token', type: UINT32, description: 'Its number, as `token.list` shows it.' }

export function tokenControls({ accounts, tokens, clock, stored }: TokenControlsOptions): Control[] {
  const add: Control = {
    name: 'token.add',
    description: 'Lets a user log in with a token; gives its number.',
    parameters: [
      userParameter,
      tenantParameter,
      { name: 'hash', type: STRING, secret: true, description: 'SHA-256 of the token, 64 hexadecimal digits.' },
      { name: 'name', type: STRING, optional: true, description: 'What it is for, to know it again.' },
      {
        name: 'scope',
        type: STRING,
        optional: true,
        description: 'What it may be used for: lines like "COLLECT host.*", separated by ";". Left out: everything.',
      },
      { name: 'expires_in_s', type: UINT64, optional: true, description: 'Left out: it does not expire.' },
    ],
    prepare(args, { identity, credential }) {
      const who = nameOf(args)
      const hash = hashOf(args)
      const name = labelOf(args)
      const scope = judged(() => parseScope(textOf(args, 'scope') ?? ''))
      needsNarrower(scope, credential.scope)
      const seconds = secondsOf(args)
      return () =>
        administered(accounts, identity, who, async (account) => {
          if (account.loopbackOnly) return failed(`${formatIdentity(who)} is the command line's own user`)
          if (tokens.find(hash)) return failed('this token is known already: make another one')
          const made = clock.wallMs()
          const expires = seconds === undefined ? undefined : made + seconds * 1000
          const { id } = tokens.add({ user: account.id, name, hash, scope: formatScope(scope), made, expires })
          await stored()
          return ok(`token ${id} of ${formatIdentity(who)} is good`, { type: UINT32, value: id })
        })
    },
  }

  const revoke: Control = {
    name: 'token.revoke',
    description: 'Takes a token back; sessions that were opened with it end within a second.',
    parameters: [tokenParameter],
    prepare(args, { identity }) {
      const id = args.get('token') as number
      return () => {
        const token = tokens.byId(id)
        const account = token && accounts.byId(token.user)
        const none = failed(`there is no token ${id}`)
        if (token === undefined || account === undefined || !reaches(identity, account.tenant)) return none
        return administered(accounts, identity, account, async () => {
          tokens.revoke(token)
          await stored()
          return ok(`token ${id} of ${formatIdentity(account)} is revoked`)
        })
      }
    },
  }

  const list: Control = {
    name: 'token.list',
    description: 'Lists the tokens: an admin sees all, others those of their tenant. `expires` 0: never.',
    parameters: [
      { ...userParameter, optional: true, description: 'Only those of this user.' },
      { ...tenantParameter, description: 'Only those of this tenant; of `user` left out: default.' },
    ],
    prepare(args, { identity }) {
      const only = args.has('user') ? nameOf(args) : undefined
      const tenant = only?.tenant ?? textOf(args, 'tenant')
      return () => {
        const items = tokens.list().flatMap((token) => {
          const account = accounts.byId(token.user)
          if (account === undefined || !reaches(identity, account.tenant)) return []
          if (tenant !== undefined && account.tenant !== tenant) return []
          if (only !== undefined && account.name !== only.name) return []
          return [describe(token, account)]
        })
        return ok('', records(items))
      }
    },
  }

  return [add, revoke, list]
}

function describe({ id, name, scope, made, expires }: TokenRow, account: { tenant: string; name: string }) {
  return [
    { name: 'token', type: UINT32, value: id },
    text('tenant', account.tenant),
    text('user', account.name),
    text('name', name),
    text('scope', scope),
    { name: 'made', type: UINT64, value: BigInt(Math.round(made * 1000)) },
    { name: 'expires', type: UINT64, value: BigInt(Math.round((expires ?? 0) * 1000)) },
  ] as const
}

function hashOf(args: Given): Uint8Array {
  const digits = textOf(args, 'hash') ?? ''
  if (!/^[0-9a-f]{64}$/i.test(digits)) {
    throw new StatusError('INVALID_ARGUMENT', 'hash is the SHA-256 of the token, 64 hexadecimal digits')
  }
  return Uint8Array.from(Buffer.from(digits, 'hex'))
}

function labelOf(args: Given): string {
  const name = textOf(args, 'name') ?? ''
  if ([...name].length <= MAX_NAME_CHARACTERS && !/\p{Cc}/u.test(name)) return name
  throw new StatusError('INVALID_ARGUMENT', `name is at most ${MAX_NAME_CHARACTERS} characters that can be shown`)
}

function secondsOf(args: Given): number | undefined {
  const seconds = args.get('expires_in_s') as bigint | undefined
  if (seconds === undefined) return undefined
  if (seconds >= 1n && seconds <= MAX_SECONDS) return Number(seconds)
  throw new StatusError('INVALID_ARGUMENT', `expires_in_s is 1 to ${MAX_SECONDS}`)
}

/** Nobody makes out of what was lent to it something that is good for more. */
function needsNarrower(scope: Scope | undefined, own: Scope | undefined): void {
  if (own === undefined) return
  const isNarrower = scope?.every(({ command, object }) => {
    const entries = command === '*' ? own.filter((entry) => entry.command === '*') : own
    return covers(entries, { command: command === '*' ? 'COLLECT' : command, object })
  })
  if (isNarrower) return
  throw new StatusError('PERMISSION_DENIED', 'the scope of a token has to lie within the one of the login that adds it')
}
