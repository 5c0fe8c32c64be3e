/**
 * When rules or roles change, bindings that are no longer allowed end [MON 15], and patterns are matched anew: one id after the
 * other, in the time that all share, since there may be a million. The
 * rights of a binding are checked when it is made and when a series appears, not per value: this is the only other place
 * where they are checked.
 */
import type { Account } from '../../../auth/mechanism.ts'
import { ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import type { Users } from '../accounts/users.ts'
import { type FairWork, SERVER_TENANT, type Steps } from '../core/fair-work.ts'
import type { Hub } from '../metrics/hub.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Instances } from '../metrics/instances.ts'
import { isPattern } from '../metrics/pattern.ts'
import type { Bindings } from './bindings.ts'
import type { Channel } from './channel.ts'
import type { Registry } from './registry.ts'

export interface RightsRevocationOptions {
  readonly hub: Pick<Hub, 'rematch'>
  readonly instances: Instances
  readonly registry: Registry
  readonly bindings: Bindings
  readonly accounts: Pick<Users, 'byId' | 'assumeRole' | 'setRole'>
  readonly work: FairWork
  /** Called if the queued values of a binding that ended could not be dropped. */
  readonly failed: (error: unknown) => void
}

/** Whether the right of an identity to read a metric, or a pattern, may have changed. */
export type IsAffected = (identity: Identity, metric: string) => boolean

/** Rules are of all tenants. */
const EVERYBODY = { tenant: SERVER_TENANT }

export class RightsRevocation {
  readonly #options: RightsRevocationOptions
  /** The last change of role of each user that has one under way; settled after the earlier ones. */
  readonly #changes = new Map<number, Promise<void>>()

  constructor(options: RightsRevocationOptions) {
    this.#options = options
  }

  /**
   * Gives a user another role at once, and stores it when everything has ended that only the old one allowed: a crash in between
   * leaves the old role. After a start nobody could tell what an admin had of other tenants from what is merely absent. Of several
   * changes at once, only the last role is stored, after the ends of all.
   */
  async changeRole(account: Account, role: string): Promise<void> {
    const { id } = account
    const { accounts } = this.#options
    const earlier = this.#changes.get(id)
    accounts.assumeRole(account, role)
    const wasAdmin = account.role === ADMIN_ROLE && role !== ADMIN_ROLE
    const own = this.reapply(({ userId }) => userId === id, wasAdmin)
    const ended = Promise.all([earlier, own]).then(() => {})
    this.#changes.set(id, ended)
    try {
      await ended
    } finally {
      if (this.#changes.get(id) === ended) {
        this.#changes.delete(id)
        const still = accounts.byId(id)
        if (still !== undefined) accounts.setRole(still, still.role)
      }
    }
    while (this.#changes.has(id)) await this.#changes.get(id)
  }

  /**
   * Checks the rights that may have changed. To be called in the turn in which they have: what begins later is judged by the
   * new ones. Settled when nothing goes on that is no longer allowed, and its values are dropped. `wereAdmins`: those concerned
   * could read what other tenants have. A metric that is not there may be one of those, and ends.
   */
  async reapply(isConcerned: IsAffected = () => true, wereAdmins = false): Promise<void> {
    const dropped: Promise<void>[] = []
    await this.#options.work.run(EVERYBODY, this.#reapply(isConcerned, wereAdmins, dropped))
    await Promise.all(dropped)
  }

  *#reapply(isConcerned: IsAffected, wereAdmins: boolean, dropped: Promise<void>[]): Steps<void> {
    const { hub, instances, bindings } = this.#options
    // Instances that are made from now on are judged by the new rights.
    for (const instance of [...instances.all()]) {
      yield
      const { owner, selection } = instance
      if (!isConcerned(owner, selection.name) || instances.find(owner, instance.id) !== instance) continue
      const lost = yield* hub.rematch(instance)
      const mayBeOfOthers = wereAdmins && !isPattern(selection.name) && !selection.isThere
      if (mayBeOfOthers || !selection.isAllowed || (!selection.carriesLabels() && lost === 'all')) {
        dropped.push(...this.#each(instance, (channel) => bindings.revoke(instance, channel)))
        bindings.endUnbound(instance)
      }
      // Values that may be read and values that may not are mixed in the queue under one id: all of them are dropped. Nobody knows
      // which of what an admin has there are of series of other tenants that have gone since.
      else if (lost !== undefined || wereAdmins) {
        dropped.push(...this.#each(instance, (channel) => bindings.purge(instance, channel)))
      }
    }
  }

  #each(instance: MetricInstance, act: (channel: Channel) => Promise<void>): Promise<void>[] {
    const { registry, failed } = this.#options
    const channels = [...instance.boundOn].map((id) => registry.byId(id)).filter((channel) => channel !== undefined)
    return channels.map((channel) => act(channel).catch(failed))
  }
}
