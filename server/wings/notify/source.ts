/** Notifiers: people are told of alerts, as the configuration says (docs/alerts.md). */
import type { Source } from '../../kit/source.ts'
import type { notifySection } from './config.ts'
import { type AlertControls, notifyTest, silencing, unsilencing } from './controls.ts'
import { NotifierFigures } from './figures.ts'
import { NotificationLog } from './log.ts'
import { checkMatchers, Notifiers } from './notifiers.ts'
import { Silences } from './silences.ts'

export const notify: Source<typeof notifySection> = {
  open(kit, tables) {
    checkMatchers(tables)
    const { clock, feed, controls, peer } = kit
    const { journal, notifications, silences: storedSilences } = peer.stored
    const log = new NotificationLog(notifications, journal)
    const silences = new Silences(storedSilences, journal)
    const notifiers = new Notifiers(kit, log, (tenant, alert) => silences.isMuted(tenant, alert, clock.wallMs()))
    const services: AlertControls = { silences, clock, notifiers, stored: () => journal.whenStored() }
    controls.add(
      silencing('alert.silence', services),
      silencing('alert.acknowledge', services),
      unsilencing(services),
      notifyTest(services),
    )
    const { running } = notifiers
    feed.add(new NotifierFigures({ running, log, silences, tenants: () => peer.view.tenants() }, clock))
    // The configuration may change before anything may be delivered.
    let wanted = tables
    let isListening = false
    return {
      statuses: running,
      listen() {
        isListening = true
        return notifiers.follow(wanted)
      },
      async prepare(next) {
        checkMatchers(next)
        return () => {
          wanted = next
          if (isListening) void notifiers.follow(next)
        }
      },
      sweep() {
        if (silences.sweep(clock.wallMs())) notifiers.lookAgain()
      },
      close: () => notifiers.stop(),
    }
  },
}
