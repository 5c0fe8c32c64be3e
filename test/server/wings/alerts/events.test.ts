/** Alerts that are announced before their first transition, so that nobody hears of it later than others. */
import { expect, it } from 'vitest'
import { LabelSet } from '../../../../promql/label-set.ts'
import type { Series } from '../../../../server/kit/metrics.ts'
import { AlertSensors } from '../../../../server/wings/alerts/events.ts'
import { newAlert } from '../../../../server/wings/alerts/rules/alerting-rule.ts'

const LABELS = LabelSet.of([['alertname', 'Full']])

/** `asking`: what those who are asked about new series are waited for by. */
function opened(asking: () => Promise<void> | undefined) {
  const seen: string[] = []
  const feed = {
    add() {},
    born(_sensor: unknown, { labels }: Series) {
      seen.push(`born ${labels['alertname']}`)
      return asking
    },
    died: ({ labels }: Series) => void seen.push(`died ${labels['alertname']}`),
    emit: ({ labels }: Series) => void seen.push(`value of ${labels['alertname']}`),
  }
  const sensors = new AlertSensors(feed as never, { holdSeries() {} }, () => {})
  return { seen, sensor: sensors.of('default') }
}

it('have their series from then on, and a value only when it is emitted', () => {
  const { seen, sensor } = opened(() => undefined)
  sensor.announce(LABELS)
  sensor.announce(LABELS)
  expect(seen).toEqual(['born Full'])
  sensor.emit({ alert: newAlert(LABELS, LabelSet.of([]), 1, 0), group: 'g', rule: 'Full', sequence: 1, timeMs: 0 })
  sensor.forget(LABELS)
  expect(seen).toEqual(['born Full', 'value of Full', 'died Full'])
})

it('say until when somebody is still to be asked', () => {
  let asking: Promise<void> | undefined = Promise.resolve()
  const { sensor } = opened(() => asking)
  expect(sensor.asked()).toBe(undefined)
  sensor.announce(LABELS)
  expect(sensor.asked()).toBe(asking)
  asking = undefined
  expect(sensor.asked()).toBe(undefined)
})
