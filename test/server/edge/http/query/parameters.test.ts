/** Parameters of the HTTP API: how times, durations and limits are read, and what is said of each that is wrong. */
import { describe, expect, it } from 'vitest'
import { QueryParameters } from '../../../../../server/edge/http/query/parameters.ts'

const given = (text: string) => new QueryParameters(new URLSearchParams(text))
const of = (name: string, text: string) => new QueryParameters(new URLSearchParams({ [name]: text }))

describe('a time', () => {
  it.each([
    ['0', 0],
    ['1.5', 1_500],
    ['-1.25', -1_250],
    ['1e3', 1_000_000],
    ['1700000000.123', 1_700_000_000_123],
    ['1700000000.1239', 1_700_000_000_124],
    ['2023-11-14T22:13:20Z', 1_700_000_000_000],
    ['2023-11-14t22:13:20.5z', 1_700_000_000_500],
    ['2023-11-14T22:13:20,123456789Z', 1_700_000_000_123],
    ['2023-11-14T23:13:20+01:00', 1_700_000_000_000],
    ['2024-02-29T23:30:00-01:00', 1_709_253_000_000],
    ['-292273086-05-16T16:47:06Z', -8.64e15],
    ['292277025-08-18T07:12:54.999999999Z', 8.64e15],
  ])('%s is read', (text, ms) => {
    expect(of('time', text).timeMs('time')).toBe(ms)
  })

  it.each([
    'noon',
    'NaN',
    'Inf',
    '1e300',
    '2023-11-14',
    '2023-11-14T22:13:20',
    '2023-13-14T22:13:20Z',
    '2023-02-29T22:13:20Z',
    '2023-11-31T00:00:00Z',
    '2023-11-14T24:00:00Z',
    '2023-11-14 22:13:20Z',
    '1 ',
    '5m',
  ])('%j is none', (text) => {
    expect(() => of('time', text).timeMs('time', 7)).toThrow(
      `invalid parameter "time": cannot parse ${JSON.stringify(text)} to a valid timestamp`,
    )
  })

  it('that is not given is the default, or missing', () => {
    expect(given('').timeMs('time', 7)).toBe(7)
    expect(given('time=').timeMs('time', 7)).toBe(7)
    expect(() => given('').timeMs('start')).toThrow('invalid parameter "start": cannot parse "" to a valid timestamp')
  })
})

describe('a duration', () => {
  it.each([
    ['15', 15_000],
    ['0.5', 500],
    ['-1', -1_000],
    ['1h30m', 5_400_000],
    ['5ms', 5],
    ['1d', 86_400_000],
  ])('%s is read', (text, ms) => {
    expect(of('step', text).durationMs('step')).toBe(ms)
    expect(of('step', text).neededDurationMs('step')).toBe(ms)
  })

  it.each(['x', '5', '5 m', '1m1h', 'NaN', 'Inf', '1e300', '5M', ''])('%j is none where one is needed', (text) => {
    if (text === '5') return expect(of('step', text).neededDurationMs('step')).toBe(5_000)
    return expect(() => of('step', text).neededDurationMs('step')).toThrow(
      `invalid parameter "step": cannot parse ${JSON.stringify(text)} to a valid duration`,
    )
  })

  it('need not be given', () => {
    expect(given('').durationMs('timeout')).toBeUndefined()
  })
})

describe('a limit', () => {
  it.each([
    ['', Number.POSITIVE_INFINITY],
    ['0', Number.POSITIVE_INFINITY],
    ['1', 1],
    ['+20', 20],
  ])('%j is read', (text, limit) => {
    expect(of('limit', text).limit()).toBe(limit)
  })

  it.each(['x', '1.5', '1e3', ' 1', '1234567890123456'])('%j is none', (text) => {
    expect(() => of('limit', text).limit()).toThrow(
      `invalid parameter "limit": cannot parse ${JSON.stringify(text)} to a number`,
    )
  })

  it('is not negative', () => {
    expect(() => of('limit', '-1').limit()).toThrow('invalid parameter "limit": limit must be non-negative')
  })
})

it('what is given first counts, and of lists all', () => {
  const parameters = given('query=a&match[]=x&query=b&match[]=y')
  expect([parameters.text('query'), parameters.all('match[]'), parameters.text('none')]).toEqual(['a', ['x', 'y'], ''])
})
