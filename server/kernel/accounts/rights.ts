/**
 * Rights: the rules of a role, then the scope of the credential. Ownership (of a channel, an id, a metric of a tenant's feed)
 * is checked before, by the owner of the object: what belongs to others is treated as absent.
 */

import type { AccessRequest, RequestedObject, Rule, Verdict } from '../../../auth/permissions.ts'
import {
  ADMIN_ROLE,
  approvalRule,
  approversOf,
  covers,
  type Identity,
  includesRole,
  isAllowedByName,
  judge,
  mayBeAllowed,
  needsNoRule,
  onlyWatches,
  type Reader,
  readsAll,
  type Scope,
} from '../../../auth/permissions.ts'
import { type PublishedFamily, Publisher } from '../../../auth/publisher.ts'
import type { Rules } from './rules.ts'

/** A session, or anything else that knows an identity and the credential that proved it. */
export interface Asker {
  readonly identity: Identity
  readonly credential: { readonly scope?: Scope | undefined }
  /** Where the producer made the connection of a session to, as scheme://host:port; undefined if it came in. */
  readonly destination?: string | undefined
}

type Argument = AccessRequest['argument']

/** The argument that rules on EXECUTE name to allow it on a connection that the producer made. */
export const DESTINATION = 'destination'

/** Publishers that are kept for their next requests. */
const MOST_PUBLISHERS = 64

export class Rights {
  /** Those that it decides by. */
  readonly rules: Rules
  /** By what they were made of, the one that was used last at the end; all for the rules of one moment. */
  readonly #publishers = new Map<string, Publisher>()
  #publishersOf = 0

  constructor(rules: Rules) {
    this.rules = rules
  }

  /** Judges by the rules of the role alone. */
  judge({ role }: Pick<Identity, 'role'>, request: AccessRequest): Verdict {
    return judge(role, this.rules.of(role), request)
  }

  /**
   * Judges by the rules of the role and by the scope of the credential. On a connection that the producer made, its destination
   * is the argument `destination`, and a rule has to allow the request for that by name, for admins too [MON 14].
   */
  may({ identity, credential, destination }: Asker, request: AccessRequest): boolean {
    if (!this.isCovered(credential, request)) return false
    const there = requestFrom(destination, request)
    if (destination === undefined) return this.judge(identity, there).allowed
    const { role } = identity
    return this.judge(identity, there).allowed && isAllowedByName(role, this.rules.of(role), there, DESTINATION)
  }

  /** The rule by which a request that is allowed has to wait until somebody approves it; undefined if it need not. */
  approvalRule({ identity: { role }, destination }: Asker, request: AccessRequest): Rule | undefined {
    return approvalRule(role, this.rules.of(role), requestFrom(destination, request))
  }

  /** The roles whose users may have to approve a control, with some arguments. `argument`: the text of those that are fixed. */
  approversOf({ role }: Pick<Identity, 'role'>, control: string, argument?: Argument): readonly string[] {
    return approversOf(role, this.rules.of(role), { command: 'EXECUTE', object: control }, argument)
  }

  /** Whether the rules of the role let every metric be read. */
  readsAll({ role }: Pick<Identity, 'role'>): boolean {
    return readsAll(role, this.rules.of(role))
  }

  /**
   * Whether a user may give a role to others, or administer users who have it: it allows nothing that its own does not. A role that
   * approves is given by admins alone: others could make themselves the second of two people.
   */
  mayGive({ role }: Pick<Identity, 'role'>, other: string): boolean {
    if (role !== ADMIN_ROLE && this.rules.approves(other)) return false
    return includesRole(role, other, (of) => this.rules.of(of))
  }

  /**
   * A scope need not name one's own channels and their settings: it only ever finds the channels that it covers, and one that only
   * watches finds none.
   */
  isCovered({ scope }: Asker['credential'], request: RequestedObject & Partial<AccessRequest>): boolean {
    const { command, object, argument } = request
    if (onlyWatches(scope)) return covers(scope, request)
    const isOwnControl = command === 'EXECUTE' && object.startsWith('channel.') && needsNoRule(object, argument)
    const isOwn = command === 'DEF_CHANNEL' ? object === '' : isOwnControl
    return isOwn || covers(scope, request)
  }

  /**
   * Whether the rules of the role allow a request with some arguments: only then a control or a metric is listed. `argument`: the
   * text of those that are fixed.
   */
  mayBeAllowed({ role }: Pick<Identity, 'role'>, request: RequestedObject, argument?: Argument): boolean {
    return mayBeAllowed(role, this.rules.of(role), request, argument)
  }

  /**
   * What judges the series of a request that publishes to a family; the same for a later one, as long as the role, the scope and
   * the rules are the same. Rules that change later do not change its judgement: it is to be asked for anew for each request.
   * Whether the connection may carry a token at all is judged before, by whoever has the connection.
   */
  publisher(asker: Asker, { family, owner, isPublished }: PublishedFamily): Publisher {
    if (this.#publishersOf !== this.rules.changes) this.#publishers.clear()
    this.#publishersOf = this.rules.changes
    const reader = readerOf(asker)
    const { role, tenant, scope } = reader
    const key = JSON.stringify([role, tenant, scope, family, owner, isPublished])
    const made = this.#publishers.get(key)
    const publisher =
      made ?? new Publisher(reader, { family, owner, ...(isPublished && { isPublished }) }, this.rules.of(role))
    this.#publishers.delete(key)
    this.#publishers.set(key, publisher)
    for (const oldest of this.#publishers.keys()) {
      if (this.#publishers.size <= MOST_PUBLISHERS) break
      this.#publishers.delete(oldest)
    }
    return publisher
  }
}

function requestFrom(destination: string | undefined, request: AccessRequest): AccessRequest {
  if (destination === undefined) return request
  return { ...request, argument: (name) => (name === DESTINATION ? destination : request.argument(name)) }
}

/** The identity narrowed by the scope of its credential. Later changes of the identity show through. */
export function readerOf({ identity, credential: { scope } }: Asker): Reader {
  return scope === undefined ? identity : Object.create(identity, { scope: { value: scope, enumerable: true } })
}
