/** Notifiers: people are told of alerts, as the configuration and users say (docs/alerts.md). */
import type { StatusEntry } from '../../kit/metrics.ts'
import { finish } from '../../kit/running.ts'
import type { Source } from '../../kit/source.ts'
import { ActiveAlerts } from './active-alerts.ts'
import { withBodies } from './bodies.ts'
import { ButtonTokens } from './button-tokens.ts'
import { Buttons } from './buttons.ts'
import type { notifySection } from './config.ts'
import { type AlertControls, notifyTest, silencing, unsilencing } from './controls.ts'
import { NotifierFigures } from './figures.ts'
import { NotificationLog } from './log.ts'
import { alertMatchers } from './matchers.ts'
import { checkMatchers, Notifiers } from './notifiers.ts'
import { putControls } from './put/controls.ts'
import { PutNotifiers } from './put/put-notifiers.ts'
import { Sealing } from './put/sealing.ts'
import type { IsMuted } from './running-notifier.ts'
import { ShownFailures } from './shown-failures.ts'
import { Silences } from './silences.ts'

export const notify: Source<typeof notifySection> = {
  async open(kit, tables) {
    await checkMatchers(tables)
    const { clock, feed, controls, peer } = kit
    const { journal, notifications, silences: storedSilences } = peer.stored
    const log = new NotificationLog(notifications, journal)
    const silences = new Silences(storedSilences, journal)
    const tokens = new ButtonTokens(kit.self.keyFor('buttons of notifications'))
    const isMuted: IsMuted = function* (tenant, alert) {
      return (yield* silences.mutingOf(tenant, alert, clock.wallMs())) !== undefined
    }
    const notifiers = new Notifiers(kit, log, isMuted, tokens)
    const { running } = notifiers
    const { watch } = kit.expressions
    const active = new ActiveAlerts({ running, silences, watch, alerts: peer.stored.alerts, view: peer.view }, clock)
    const services: AlertControls = {
      silences,
      clock,
      notifiers,
      firingCount: (reader, texts) => kit.poll.work(reader, active.firingCount(reader, finish(alertMatchers(texts)))),
      stored: () => journal.whenStored(),
    }
    controls.add(
      silencing('alert.silence', services),
      silencing('alert.acknowledge', services),
      unsilencing(services),
      notifyTest(services),
    )
    // It has no series: what users have put goes with their tenant as theirs do.
    feed.add({
      family: 'notify.',
      open() {},
      // biome-ignore lint/correctness/useYield: there are as few as the quota of the tenant allows
      *endSeries(tenant) {
        if (put.endTenant(tenant)) void follow()
      },
    })
    feed.add(new NotifierFigures({ running, log, silences, tenants: () => peer.view.tenants() }, clock))
    feed.add(active)
    // The configuration may change before anything may be delivered.
    let wanted = await withBodies(tables, clock.wallMs())
    let isListening = false
    const sealing = new Sealing(kit.self.keyFor('secrets of notifiers'))
    const put = new PutNotifiers({ kit, sealing, configured: () => wanted })
    await put.open()
    const statuses: StatusEntry[] = []
    const showStatuses = () => statuses.splice(0, Number.POSITIVE_INFINITY, ...put.statuses, ...notifiers.running)
    const follow = (): Promise<void> => {
      const following = notifiers.follow([...wanted, ...put.tables()])
      showStatuses()
      return following
    }
    controls.add(...putControls({ put, follow, stored: () => journal.whenStored() }))
    return {
      statuses,
      rules: new ShownFailures(running, peer.view, clock),
      acknowledging: new Buttons(tokens, notifiers, silences, peer.view, clock),
      listen() {
        isListening = true
        return follow()
      },
      async prepare(next) {
        await checkMatchers(next)
        const read = await withBodies(next, clock.wallMs())
        return () => {
          wanted = read
          if (isListening) void follow()
        }
      },
      sweep() {
        if (silences.sweep(clock.wallMs())) notifiers.lookAgain()
        if (isListening && (put.hasChanged || notifiers.hasStopped)) void follow()
        showStatuses()
        notifiers.sweep()
      },
      close: () => notifiers.stop(),
    }
  },
}
