/** Tells a tenant that its feeds bring in more than it may have: at most once a minute, with how much was kept out since. */
import type { Clock } from '../clock.ts'
import type { Quotas } from '../quotas.ts'
import type { Notices } from './notices.ts'

const MINUTE_MS = 60_000

export class OverQuota {
  readonly #quotas: Quotas
  readonly #notices: Pick<Notices, 'emit'>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #told = new Map<string, { readonly refused: number; readonly atMs: number }>()

  constructor(quotas: Quotas, notices: Pick<Notices, 'emit'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#quotas = quotas
    this.#notices = notices
    this.#clock = clock
  }

  /** To be called every second or so. */
  tell(): void {
    const now = this.#clock.monotonicMs()
    for (const [tenant, { values }] of this.#quotas.all()) {
      const { refused, atMs } = this.#told.get(tenant) ?? { refused: 0, atMs: Number.NEGATIVE_INFINITY }
      if (values.refused === refused || now - atMs < MINUTE_MS) continue
      const detail =
        `the feeds of tenant ${tenant} bring in more than ${values.limit} values a second: ` +
        `${values.refused - refused} were kept out`
      this.#notices.emit({ severity: 'warning', subject: 'quota', detail }, { tenant })
      this.#told.set(tenant, { refused: values.refused, atMs: now })
    }
  }
}
