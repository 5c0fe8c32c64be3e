/** `role.explain`: whether a user may do something, and by which rule or default. Asks what the commands themselves ask. */
import { DEFAULT_TENANT } from '../../auth/identity.ts'
import type { RuledCommand } from '../../auth/permissions.ts'
import { ADMIN_ROLE, mayRead } from '../../auth/permissions.ts'
import { parseIdentity } from '../../auth/prepare.ts'
import { type CommandName, commands } from '../../protocol/monitor/commands.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Rights } from '../accounts/rights.ts'
import type { Users } from '../accounts/users.ts'
import { StatusError } from '../core/errors.ts'
import type { Hub } from '../metrics/hub.ts'
import { isPattern } from '../metrics/pattern.ts'
import { judged, noSuchUser, reaches, text, textOf } from './administration.ts'
import { type Control, ok } from './control.ts'
import { objectParameter, spelled, whereOf, whereParameter } from './roles.ts'

export interface ExplainOptions {
  readonly accounts: Users
  readonly rights: Rights
  readonly hub: Pick<Hub, 'sensors'>
  /** Where a URL leads: its one spelling. Throws StatusError INVALID_ARGUMENT. */
  readonly destination: (url: string) => { readonly url: string }
  /** Whether the operator's list names where a URL leads. */
  readonly permits: (url: string) => boolean
  /** Of a control that is not for all of them. */
  readonly tenantsOf: (control: string) => readonly string[] | undefined
}

const { BOOLEAN, REC, STRING } = BasicType

/** What a command is judged as; all others concern only what one has made oneself. */
const ruled: Partial<Record<CommandName, RuledCommand>> = {
  COLLECT: 'COLLECT',
  QUERY: 'COLLECT',
  SUBSCRIBE: 'COLLECT',
  BUFFER: 'COLLECT',
  GET: 'COLLECT',
  EXECUTE: 'EXECUTE',
  DEF_CHANNEL: 'DEF_CHANNEL',
}

export function explain({ accounts, rights, hub, destination, permits, tenantsOf }: ExplainOptions): Control {
  return {
    name: 'role.explain',
    description: 'Whether a user may do something, and by which rule.',
    parameters: [
      { name: 'user', type: STRING, description: `tenant/user, or user for the tenant ${DEFAULT_TENANT}.` },
      { name: 'command', type: STRING, description: `One of ${Object.keys(commands).join(', ')}.` },
      objectParameter,
      whereParameter,
    ],
    prepare(args, { identity: asker }) {
      const name = judged(() => parseIdentity(textOf(args, 'user') ?? ''))
      const command = commandOf(textOf(args, 'command') ?? '')
      const ruledAs = ruled[command]
      const given = textOf(args, 'object') ?? ''
      const object = ruledAs === undefined || given === '' ? given : spelled(ruledAs, given, destination)
      const where = new Map(Object.entries(whereOf(args)))
      return () => {
        const account = reaches(asker, name.tenant) ? accounts.find(name.tenant, name.name) : undefined
        if (account === undefined) return noSuchUser(name)
        const identity = accounts.identity(account)
        const answer = (allowed: boolean, because: string) =>
          ok('', { type: REC, value: [{ name: 'allowed', type: BOOLEAN, value: allowed }, text('because', because)] })
        if (ruledAs === undefined) return answer(true, 'what one has made oneself needs no rule')
        if (ruledAs === 'COLLECT' && !isPattern(object)) {
          const isTheirs = hub.sensors.some((sensor) => {
            return object.startsWith(sensor.family) && sensor.metric(object) && mayRead(identity, sensor.owner)
          })
          if (!isTheirs) return answer(false, 'neither the tenant nor the producer has such a metric')
        }
        // To whoever is no admin another tenant's is as absent.
        const only = ruledAs === 'EXECUTE' && asker.role === ADMIN_ROLE ? tenantsOf(object) : undefined
        if (only?.includes(identity.tenant) === false) return answer(false, 'the control is for other tenants')
        const verdict = rights.judge(identity, { command: ruledAs, object, argument: (of) => where.get(of) })
        const isDialled = ruledAs === 'DEF_CHANNEL' && object !== '' && !isPattern(object)
        if (verdict.allowed && isDialled && !permits(object)) {
          return answer(false, `${verdict.because}; but \`dial.allow\` in the configuration leaves it out`)
        }
        return answer(verdict.allowed, verdict.because)
      }
    },
  }
}

function commandOf(name: string): CommandName {
  if (Object.hasOwn(commands, name)) return name as CommandName
  throw new StatusError(
    'INVALID_ARGUMENT',
    `there is no command ${name}: it is one of ${Object.keys(commands).join(', ')}`,
  )
}
