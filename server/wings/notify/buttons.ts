/** Buttons of notifications: whoever was told acknowledges by the token that came with it. */
import type { Acknowledged, Acknowledging } from '../../kit/acknowledging.ts'
import type { Clock } from '../../kit/running.ts'
import type { ButtonTokens } from './button-tokens.ts'
import { exactMatchers } from './matchers.ts'
import type { Notifiers } from './notifiers.ts'
import type { Silences } from './silences.ts'

/** For how long nobody is told again: as `cinnabar alerts ack` has it. */
const ACKNOWLEDGED_MS = 7 * 86_400_000
const COMMENT = 'by the button of a notification'

export class Buttons implements Acknowledging {
  readonly #tokens: ButtonTokens
  readonly #notifiers: Pick<Notifiers, 'find' | 'lookAgain'>
  readonly #silences: Pick<Silences, 'add'>
  readonly #clock: Pick<Clock, 'wallMs'>

  constructor(
    tokens: ButtonTokens,
    notifiers: Pick<Notifiers, 'find' | 'lookAgain'>,
    silences: Pick<Silences, 'add'>,
    clock: Pick<Clock, 'wallMs'>,
  ) {
    this.#tokens = tokens
    this.#notifiers = notifiers
    this.#silences = silences
    this.#clock = clock
  }

  acknowledge(token: string): Acknowledged | undefined {
    const nowMs = this.#clock.wallMs()
    const claim = this.#tokens.read(token, nowMs)
    if (claim === undefined) return undefined
    const [tenant = '', notifier = ''] = claim.notifier.split('/')
    const found = this.#notifiers.find(tenant, notifier)
    if (found?.groups === undefined || !found.table.acknowledge) return undefined
    const { open, isRepeated } = found.groups.claimed(claim)
    const answer = { tenant, notifier, id: '', matchers: [] }
    if (open.length === 0) return { ...answer, outcome: isRepeated ? 'repeated' : 'ended' }
    const matchers = exactMatchers(open)
    const row = this.#silences.add({
      tenant,
      kind: 'acknowledgement',
      matchers: JSON.stringify(matchers),
      begins: nowMs,
      ends: nowMs + ACKNOWLEDGED_MS,
      author: `notify:${notifier}`,
      comment: COMMENT,
    })
    if (row === undefined) return { ...answer, outcome: 'full' }
    // Also where the clock was set back since: this button must not work again.
    found.groups.acknowledge(open, Math.max(nowMs, claim.atMs))
    this.#notifiers.lookAgain()
    return { ...answer, outcome: 'acknowledged', id: row.id, matchers }
  }
}
