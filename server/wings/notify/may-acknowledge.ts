/** What the button of a notification acknowledges, and whether it may. */
import type { OwnView } from '../../kit/peer.ts'
import type { NotifierTable } from './bodies.ts'
import { exactMatchers, type MatchedAlert } from './matchers.ts'

/** For how long nobody is told again: as `cinnabar alerts ack` has it. */
export const ACKNOWLEDGED_SECONDS = 7 * 86_400
export const BUTTON_COMMENT = 'by the button of a notification'

/**
 * Whether the notifications of a notifier have buttons for these alerts. One that a user has put may do no more than that user: he has to
 * be allowed to acknowledge them himself, at this moment and without anybody's approval.
 */
export function mayAcknowledge(
  { acknowledge, origin }: Pick<NotifierTable, 'acknowledge' | 'origin'>,
  alerts: readonly MatchedAlert[],
  view: Pick<OwnView, 'mayExecute'>,
): boolean {
  if (!acknowledge || origin === undefined) return acknowledge
  const reader = origin.reader()
  const args: Readonly<Record<string, string>> = {
    matchers: exactMatchers(alerts).join('\n'),
    seconds: String(ACKNOWLEDGED_SECONDS),
    comment: BUTTON_COMMENT,
  }
  return reader !== undefined && view.mayExecute(reader, 'alert.acknowledge', (name) => args[name])
}
