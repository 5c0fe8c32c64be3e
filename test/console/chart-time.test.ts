import { describe, expect, it } from 'vitest'
import {
  lengthText,
  linkAt,
  linkInTime,
  momentText,
  REMEMBERED,
  timeArgs,
  timeOfFields,
  timeOfUrl,
} from '../../console/chart-time.ts'

const AT = 1_700_000_000
const argsOf = (written: ReturnType<typeof timeArgs>) => new URLSearchParams(Object.fromEntries(written))
const of = (query: string) => timeOfUrl(new URLSearchParams(query))

describe('the time of charts in a URL', () => {
  it('is the last five minutes if it has none, or something else', () => {
    const usual = { seconds: 300, at: undefined }
    for (const query of ['', '.range=', '.range=5', '.range=0s', '.range=99999y', '.range=-5m', '.at=yesterday']) {
      expect(of(query)).toEqual(usual)
    }
    expect(timeArgs(usual)).toEqual([])
  })

  it('is written in the largest unit, and read again as what it was', () => {
    expect(REMEMBERED.map(lengthText)).toEqual(['5m', '15m', '1h', '6h', '1d', '7d', '30d', '1y', '2y'])
    expect(lengthText(5_431)).toBe('5431s')
    for (const seconds of [...REMEMBERED, 2, 61, 5_431]) {
      for (const at of [undefined, AT]) {
        const args = argsOf(timeArgs({ seconds, at }))
        expect(timeOfUrl(args)).toEqual({ seconds, at })
      }
    }
  })

  it('is whole seconds, so that what is written does not change when it is read', () => {
    const written = timeArgs({ seconds: 12.4, at: AT + 0.3 })
    expect(written).toEqual([
      ['.range', '12s'],
      ['.at', '2023-11-14T22:13:20Z'],
    ])
    expect(timeArgs(timeOfUrl(argsOf(written)))).toEqual(written)
  })

  it('takes the place of another one in a link, and leaves the rest', () => {
    expect(linkAt('#/hosts/web1?.range=1d&match=a', [['.range', '6h']])).toBe('#/hosts/web1?match=a&.range=6h')
    expect(linkAt('#/board?.range=1d', [])).toBe('#/board')
    expect(linkInTime('#/metrics/a?host=x', new URLSearchParams('.at=2023-11-14T22:13:20Z'))).toBe(
      '#/metrics/a?host=x&.at=2023-11-14T22%3A13%3A20Z',
    )
  })
})

describe('the time between two fields', () => {
  it('is that of the browser, to the second', () => {
    expect(timeOfFields(momentText(AT), momentText(AT + 90))).toEqual({ seconds: 90, at: AT + 90 })
  })

  it('is none if one is missing, they are the wrong way round, or too far apart', () => {
    expect(timeOfFields('', momentText(AT))).toContain('Both')
    expect(timeOfFields(momentText(AT), momentText(AT))).toContain('later')
    expect(timeOfFields(momentText(AT), momentText(AT + 3 * 365 * 86_400))).toContain('two years')
  })
})
