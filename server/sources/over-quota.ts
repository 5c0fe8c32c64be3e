/** Notices to a tenant that exceeds a quota where no command could be refused: at most once a minute, with the amount. */

import type { Quotas } from '../accounts/quotas.ts'
import type { Clock } from '../core/clock.ts'
import type { Notices } from './producer/notices.ts'

const MINUTE_MS = 60_000

export class QuotaNotices {
  readonly #quotas: Quotas
  readonly #notices: Pick<Notices, 'emit'>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #reported = new Map<string, { readonly refused: number; readonly atMs: number }>()

  constructor(quotas: Quotas, notices: Pick<Notices, 'emit'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#quotas = quotas
    this.#notices = notices
    this.#clock = clock
  }

  /** To be called every second or so. */
  report(): void {
    for (const [tenant, { values, instances }] of this.#quotas.all()) {
      this.#tell(tenant, 'values', values, (more) => {
        return `the feeds of tenant ${tenant} bring in more than ${values.limit} values a second: ${more} were kept out`
      })
      this.#tell(tenant, 'instances', instances, (more) => {
        return `tenant ${tenant} has ${instances.limit} metrics bound, all it may: ${more} matches of patterns were left out`
      })
    }
  }

  #tell(tenant: string, what: string, { refused }: { readonly refused: number }, say: (more: number) => string): void {
    const now = this.#clock.monotonicMs()
    const key = `${what} ${tenant}`
    const reported = this.#reported.get(key) ?? { refused: 0, atMs: Number.NEGATIVE_INFINITY }
    if (refused === reported.refused || now - reported.atMs < MINUTE_MS) return
    this.#notices.emit({ severity: 'warning', subject: 'quota', detail: say(refused - reported.refused) }, { tenant })
    this.#reported.set(key, { refused, atMs: now })
  }
}
