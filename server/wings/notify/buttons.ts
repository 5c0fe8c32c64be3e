/** Buttons of notifications: whoever was told acknowledges by the token that came with it. */
import type { Acknowledged, Acknowledging } from '../../kit/acknowledging.ts'
import type { OwnView } from '../../kit/peer.ts'
import type { Clock } from '../../kit/running.ts'
import { authorId, type ButtonTokens } from './button-tokens.ts'
import { exactMatchers } from './matchers.ts'
import { ACKNOWLEDGED_SECONDS, BUTTON_COMMENT, mayAcknowledge } from './may-acknowledge.ts'
import { USER_PREFIX } from './names.ts'
import type { Notifiers } from './notifiers.ts'
import type { Silences } from './silences.ts'

const SECOND_MS = 1_000

type View = Pick<OwnView, 'mayExecute'>

export class Buttons implements Acknowledging {
  readonly #tokens: ButtonTokens
  readonly #notifiers: Pick<Notifiers, 'find' | 'lookAgain'>
  readonly #silences: Pick<Silences, 'add'>
  readonly #view: View
  readonly #clock: Pick<Clock, 'wallMs'>

  constructor(
    tokens: ButtonTokens,
    notifiers: Pick<Notifiers, 'find' | 'lookAgain'>,
    silences: Pick<Silences, 'add'>,
    view: View,
    clock: Pick<Clock, 'wallMs'>,
  ) {
    this.#tokens = tokens
    this.#notifiers = notifiers
    this.#silences = silences
    this.#view = view
    this.#clock = clock
  }

  acknowledge(token: string): Acknowledged | undefined {
    const nowMs = this.#clock.wallMs()
    const claim = this.#tokens.read(token, nowMs)
    if (claim === undefined) return undefined
    const [tenant = '', name = ''] = claim.notifier.split('/')
    const found = this.#notifiers.find(tenant, name)
    if (found?.groups === undefined || authorId(found.table) !== claim.user) return undefined
    const { open, isRepeated } = found.groups.claimed(claim)
    if (!mayAcknowledge(found.table, open, this.#view)) return undefined
    const author = USER_PREFIX + name
    const answer = { tenant, author, id: '', matchers: [] }
    if (open.length === 0) return { ...answer, outcome: isRepeated ? 'repeated' : 'ended' }
    const matchers = exactMatchers(open)
    const row = this.#silences.add({
      tenant,
      kind: 'acknowledgement',
      matchers: JSON.stringify(matchers),
      begins: nowMs,
      ends: nowMs + ACKNOWLEDGED_SECONDS * SECOND_MS,
      author,
      comment: BUTTON_COMMENT,
    })
    if (row === undefined) return { ...answer, outcome: 'full' }
    // Also where the clock was set back since: this button must not work again.
    found.groups.acknowledge(open, Math.max(nowMs, claim.atMs))
    this.#notifiers.lookAgain()
    return { ...answer, outcome: 'acknowledged', id: row.id, matchers }
  }
}
