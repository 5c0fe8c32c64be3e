/** The past states of alerts: from what the series `ALERTS` has at each evaluation, or at the end of each part of a line. */
import { describe, expect, it } from 'vitest'
import { byRecency, type PastAlert, pastAlertsOf, secondsIn } from '../../console/alert-history.ts'
import { spanText, statesText } from '../../console/parts/state-line.tsx'

const series = (labels: Record<string, string>, ...seconds: readonly number[]) => ({
  name: '',
  labels: { alertname: 'Full', ...labels },
  times: seconds.map((time) => time * 1e6),
  values: seconds.map(() => 1),
})
const [PENDING, FIRING] = [{ alertstate: 'pending' }, { alertstate: 'firing' }]
const spansOf = (all: readonly PastAlert[]) => all.map(({ spans }) => spans)

describe('at each evaluation', () => {
  const EVERY_10 = { before: 0, after: 10 }

  it('a state lasts until the next evaluation, and one that follows begins there', () => {
    const all = pastAlertsOf([series(PENDING, 100, 110, 120), series(FIRING, 130, 140)], EVERY_10)
    expect(all).toMatchObject([{ name: 'Full', severity: '', labels: [['alertname', 'Full']] }])
    expect(spansOf(all)).toEqual([
      [
        { state: 'pending', from: 100, to: 130 },
        { state: 'firing', from: 130, to: 150 },
      ],
    ])
  })

  it('where there is none in between, it had ended', () => {
    expect(spansOf(pastAlertsOf([series(FIRING, 100, 110, 130)], EVERY_10))).toEqual([
      [
        { state: 'firing', from: 100, to: 120 },
        { state: 'firing', from: 130, to: 140 },
      ],
    ])
    // One that was a little late has left out nothing.
    expect(spansOf(pastAlertsOf([series(FIRING, 100, 113, 120)], EVERY_10))[0]).toHaveLength(1)
  })
})

describe('in parts', () => {
  const PARTS_OF_60 = { before: 60, after: 0 }

  it('a part is in the worst state that was there in it', () => {
    expect(spansOf(pastAlertsOf([series(FIRING, 180), series(PENDING, 120, 180, 240)], PARTS_OF_60))).toEqual([
      [
        { state: 'pending', from: 60, to: 120 },
        { state: 'firing', from: 120, to: 180 },
        { state: 'pending', from: 180, to: 240 },
      ],
    ])
  })

  it('alerts are told apart by all of their labels, and sorted by when they were there last', () => {
    const all = pastAlertsOf(
      [
        series({ ...FIRING, host: 'a', severity: 'page' }, 60, 120),
        series({ ...FIRING, host: 'b' }, 240),
        series({ ...PENDING, host: 'c' }, 240),
      ],
      PARTS_OF_60,
    ).toSorted(byRecency)
    expect(all.map(({ labels }) => Object.fromEntries(labels)['host'])).toEqual(['b', 'c', 'a'])
    expect(all.map((alert) => [secondsIn(alert, 'firing'), secondsIn(alert, 'pending')])).toEqual([
      [60, 0],
      [0, 60],
      [120, 0],
    ])
    expect(all[2]).toMatchObject({ severity: 'page' })
  })
})

it('is said in words, too', () => {
  const spans = [
    { state: 'firing', from: 0, to: 7_200 } as const,
    { state: 'pending', from: 8_000, to: 8_600 } as const,
  ]
  expect(statesText({ spans }, 86_400)).toBe('In the last 24 h: firing for 2 h, pending for 10 min')
  expect(statesText({ spans: [] }, 3_600)).toBe('In the last 60 min: neither pending nor firing')
  expect(spanText({ state: 'firing', from: 100, to: 160 }, 160)).toMatch(/^firing .* – now, 60 s$/)
  expect(spanText({ state: 'firing', from: 100, to: 160 }, 200)).toMatch(/^firing .* – .*:40, 60 s$/)
})
