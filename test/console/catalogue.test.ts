import { describe, expect, it } from 'vitest'
import { familiesOf, matcherOf, toEntry } from '../../console/catalogue.ts'

const entry = (name: string, description = '') => ({
  name,
  description,
  kind: 'continuous',
  type: 'double',
  unit: '',
  parameters: [],
  isCounter: false,
})

describe('matcherOf', () => {
  it.each([
    ['', 'gmetric.load_one', true],
    ['LOAD', 'gmetric.load_one', true],
    [' load_o ', 'gmetric.load_one', true],
    ['disk', 'gmetric.load_one', false],
    ['gmetric.*', 'gmetric.load_one', true],
    ['gmetric.*', 'host.gmetric.x', false],
    ['*.load*', 'gmetric.load_one', true],
    ['*one', 'gmetric.load_one', true],
    ['a*a', 'a', false],
    ['a*b*a', 'aba', true],
    ['a*bb*a', 'aba', false],
    ['*b*b*', 'xbx', false],
  ])('%j means %j: %s', (text, name, isMeant) => {
    expect(matcherOf(text)(entry(name))).toBe(isMeant)
  })

  it('looks into descriptions too', () => {
    expect(matcherOf('average')(entry('host.load.one', 'Load average over one minute'))).toBe(true)
  })
})

describe('toEntry', () => {
  it.each([
    [{ labels: 'any', monotonic: true }, true],
    [{ slope: 'positive', monotonic: true }, true],
    [{ labels: 'any' }, false],
    [undefined, false],
  ])('with the details %j it is a counter: %s', (details, isCounter) => {
    expect(toEntry({ name: 'prometheus.x_total', ...(details && { details }) }).isCounter).toBe(isCounter)
  })
})

describe('familiesOf', () => {
  it('counts the beginnings of names', () => {
    expect(familiesOf(['a.x', 'a.y', 'b.x', 'c'].map((name) => entry(name)))).toEqual([
      ['a.', 2],
      ['b.', 1],
    ])
  })
})
