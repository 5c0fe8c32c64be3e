/** `token.*`: opaque tokens of users [MON 11]. The user of a token generates it; the producer only ever gets its hash. */
import { formatIdentity } from '../../../auth/identity.ts'
import { allowedByAny, covers, formatScope, parseScope, type Scope } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { TokenRow } from '../../../storage/store.ts'
import type { Tokens } from '../accounts/tokens.ts'
import { hasNoLogin } from '../accounts/users.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import {
  type Administration,
  asInvalidArgument,
  records,
  seesTenant,
  stringArgument,
  tenantParameter,
  textField,
  userNameArgument,
  userParameter,
  withAdministeredAccount,
} from './administration.ts'
import { type Control, type ControlArguments, failed, ok } from './control.ts'

export interface TokenControlsOptions extends Administration {
  readonly tokens: Tokens
  readonly clock: Pick<Clock, 'wallMs'>
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
}

const { STRING, UINT32, UINT64 } = BasicType
const MAX_NAME_CHARACTERS = 64
const MAX_SECONDS = 100 * 365 * 86_400
const tokenParameter = { name: 'token', type: UINT32, description: 'Its number, as `token.list` shows it.' }

export function tokenControls(options: TokenControlsOptions): Control[] {
  const { accounts, tokens, clock, stored } = options
  const add: Control = {
    name: 'token.add',
    description: 'Lets a user log in with a token; returns its number.',
    parameters: [
      userParameter,
      tenantParameter,
      {
        name: 'hash',
        type: STRING,
        secret: true,
        maxLength: 64,
        description: 'SHA-256 of the token, 64 hexadecimal digits.',
      },
      { name: 'name', type: STRING, optional: true, description: 'What it is for.' },
      {
        name: 'scope',
        type: STRING,
        optional: true,
        description:
          'What it may be used for: lines like "COLLECT host.*", or "WATCH host.*" for nothing but reading, separated by ";". If omitted: everything but PUBLISH.',
      },
      {
        name: 'expires_in_s',
        type: UINT64,
        optional: true,
        min: 1,
        max: MAX_SECONDS,
        description: 'If omitted, it does not expire.',
      },
    ],
    prepare(args, { identity, credential }) {
      const who = userNameArgument(args)
      const hash = hashOf(args)
      const name = labelOf(args)
      const scope = asInvalidArgument(() => parseScope(stringArgument(args, 'scope') ?? ''))
      requireNarrower(scope, credential.scope)
      const seconds = args.get('expires_in_s') as bigint | undefined
      return () =>
        withAdministeredAccount(options, identity, who, async (account) => {
          if (account.loopbackOnly) return failed(`${formatIdentity(who)} is the command line's own user`)
          if (hasNoLogin(account)) return failed(`${formatIdentity(who)} is a user of the server itself`)
          if (tokens.find(hash)) return failed('this token exists already: generate another one')
          const made = clock.wallMs()
          const expires = seconds === undefined ? undefined : made + Number(seconds) * 1000
          const { id } = tokens.add({ user: account.id, name, hash, scope: formatScope(scope), made, expires })
          await stored()
          return ok(`token ${id} of ${formatIdentity(who)} added`, { type: UINT32, value: id })
        })
    },
  }

  const revoke: Control = {
    name: 'token.revoke',
    description: 'Revokes a token; sessions that were opened with it end within a second.',
    usesReserve: true,
    parameters: [tokenParameter],
    prepare(args, { identity }) {
      const id = args.get('token') as number
      return () => {
        const token = tokens.byId(id)
        const account = token && accounts.byId(token.user)
        const none = failed(`there is no token ${id}`)
        if (token === undefined || account === undefined || !seesTenant(identity, account.tenant)) return none
        return withAdministeredAccount(options, identity, account, async () => {
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
      { ...tenantParameter, description: 'Only those of this tenant; with `user`, if omitted: default.' },
    ],
    isRecorded: () => false,
    prepare(args, { identity }) {
      const only = args.has('user') ? userNameArgument(args) : undefined
      const tenant = only?.tenant ?? stringArgument(args, 'tenant')
      return () => {
        const items = tokens.list().flatMap((token) => {
          const account = accounts.byId(token.user)
          if (account === undefined || !seesTenant(identity, account.tenant)) return []
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
    textField('tenant', account.tenant),
    textField('user', account.name),
    textField('name', name),
    textField('scope', scope),
    { name: 'made', type: UINT64, value: BigInt(Math.round(made * 1000)) },
    { name: 'expires', type: UINT64, value: BigInt(Math.round((expires ?? 0) * 1000)) },
  ] as const
}

function hashOf(args: ControlArguments): Uint8Array {
  const digits = stringArgument(args, 'hash') ?? ''
  if (!/^[0-9a-f]{64}$/i.test(digits)) {
    throw new StatusError('INVALID_ARGUMENT', 'hash is the SHA-256 of the token, 64 hexadecimal digits')
  }
  return Uint8Array.from(Buffer.from(digits, 'hex'))
}

function labelOf(args: ControlArguments): string {
  const name = stringArgument(args, 'name') ?? ''
  if ([...name].length <= MAX_NAME_CHARACTERS && !/\p{Cc}/u.test(name)) return name
  throw new StatusError('INVALID_ARGUMENT', `name is at most ${MAX_NAME_CHARACTERS} printable characters`)
}

/** A login may not create a token that permits more than the login itself. Throws StatusError PERMISSION_DENIED. */
function requireNarrower(scope: Scope | undefined, own: Scope | undefined): void {
  if (own === undefined) return
  const isNarrower = scope?.every(({ command, object }) => {
    if (command !== '*') return covers(own, { command: command === 'WATCH' ? 'COLLECT' : command, object })
    const entries = own.filter((entry) => entry.command === '*')
    return allowedByAny.every((each) => covers(entries, { command: each, object }))
  })
  if (isNarrower) return
  throw new StatusError('PERMISSION_DENIED', 'the scope of a token must lie within the scope of the login that adds it')
}
