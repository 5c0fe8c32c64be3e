/**
 * Who may do what: the rules of the role, then what the credential is for. Whose something is (a channel, an id, a metric of
 * a tenant's feed) is looked at first, by whoever has it: what is not theirs is not there.
 */
import { type Identity, judge, mayBeAllowed, mayRead, type Owner, type Reader } from '../../auth/permissions.ts'
import type { Request, Verdict } from '../../auth/rules.ts'
import { covers, type Scope } from '../../auth/scope.ts'
import type { Rules } from './rules.ts'

/** A session, or whatever else knows who asks and with what that was proven. */
export interface Asker {
  readonly identity: Identity
  readonly credential: { readonly scope?: Scope | undefined }
}

type Argument = Request['argument']

export class Rights {
  readonly #rules: Rules

  constructor(rules: Rules) {
    this.#rules = rules
  }

  /** By the rules of the role alone. */
  judge({ role }: Pick<Identity, 'role'>, request: Request): Verdict {
    return judge(role, this.#rules.of(role), request)
  }

  /** By the rules and by what the credential is for. */
  may({ identity, credential }: Asker, request: Request): boolean {
    return this.isCovered(credential, request) && this.judge(identity, request).allowed
  }

  /** A channel of one's own, and its settings, need no scope to name them: of channels it finds only those it covers. */
  isCovered({ scope }: Asker['credential'], request: Pick<Request, 'command' | 'object'>): boolean {
    const { command, object } = request
    const isOwn = command === 'DEF_CHANNEL' ? object === '' : command === 'EXECUTE' && object.startsWith('channel.')
    return isOwn || covers(scope, request)
  }

  /** Whether there are arguments with which it may be executed: such a control is shown. */
  isShown({ role }: Identity, control: string): boolean {
    return mayBeAllowed(role, this.#rules.of(role), { command: 'EXECUTE', object: control })
  }

  /** Whether a metric may be read with these arguments: labels of a series, or what was given with COLLECT. */
  mayRead(identity: Identity, owner: Owner, metric: string, argument: Argument): boolean {
    if (!mayRead(identity, owner)) return false
    return this.judge(identity, { command: 'COLLECT', object: metric, argument }).allowed
  }

  /** Whether there are arguments with which it may be read: such a metric is shown. */
  mayReadSome(identity: Identity, owner: Owner, metric: string): boolean {
    const { role } = identity
    return mayRead(identity, owner) && mayBeAllowed(role, this.#rules.of(role), { command: 'COLLECT', object: metric })
  }
}

/** The identity as a credential shows it. What changes of the identity changes of this too. */
export function readerOf({ identity, credential: { scope } }: Asker): Reader {
  return scope === undefined ? identity : Object.create(identity, { scope: { value: scope, enumerable: true } })
}
