/** Templates that go wrong, or are bounded. What right ones give is compared with promtool: test/server/start/rules.test.ts. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TemplateError } from '../../../promql/template/parse.ts'
import { TextTemplate } from '../../../promql/template/template.ts'

const surroundings = {
  query: (expression: string) => (expression === 'up' ? [{ Labels: new Map([['job', 'a']]), Value: 1 }] : []),
  externalUrl: 'https://mon.example/c/',
  timeMs: 1_500,
}
const data = {
  labels: new Map([['job', 'a']]),
  externalLabels: new Map<string, string>(),
  externalUrl: 'https://mon.example/c/',
  value: 2.5,
}
const executed = (text: string): string => new TextTemplate(text).execute(data, surroundings)

describe('a template that is wrong is refused when it is loaded', () => {
  it.each([
    ['{{ .Labels', 'an action has no }}'],
    ['{{ end }}', 'unexpected {{end}}'],
    ['{{ if true }}', '{{if}} has no {{end}}'],
    ['{{ if true }}a{{ else }}b', '{{if}} has no {{end}} after {{else}}'],
    ['{{ if true }}a{{ else x }}b{{ end }}', 'unexpected x after {{else'],
    ['{{ $x }}', 'variable $x is not declared'],
    ['{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}', 'variable $x is not declared'],
    ['{{ nothing }}', 'function "nothing" is not known'],
    ['{{ }}', 'a value is missing'],
    ['{{ 1 | }}', 'a value is missing'],
    ['{{ 1 | 2 }}', 'a value cannot take another one'],
    ['{{ 1 2 }}', 'only a function takes arguments'],
    ['{{ (1 }}', 'a bracket is not closed'],
    ['{{ 1 ) }}', 'unexpected )'],
    ['{{ "a }}', 'unexpected "a'],
    ['{{ # }}', 'unexpected #'],
    ['{{ define "x" }}', '{{define}} has no {{end}}'],
    ['{{ define x }}{{ end }}', '{{define}} needs a name in quotes'],
    ['{{ define "x" 1 }}{{ end }}', 'unexpected 1 in {{define}}'],
    ['{{ define "x" }}{{ end }}{{ define "x" }}{{ end }}', 'two templates are called "x"'],
    ['{{ if true }}{{ define "x" }}{{ end }}{{ end }}', 'unexpected {{define}}: it cannot be in a block'],
    ['{{ define "x" }}{{ $labels }}{{ end }}', 'variable $labels is not declared'],
    ['{{ range .Labels }}{{ block "x" . }}{{ break }}{{ end }}{{ end }}', '{{break}} is not in a {{range}}'],
    ['{{ block "x" }}{{ end }}', 'a value is missing in {{block}}'],
    ['{{ continue }}', '{{continue}} is not in a {{range}}'],
    ['{{ range .Labels }}{{ break 1 }}{{ end }}', 'unexpected 1 in {{break}}'],
    ['{{ with $a, $b := 1 }}{{ end }}', 'only {{range}} has two variables'],
    [`{{ ${'('.repeat(200)}1${')'.repeat(200)} }}`, 'more than 100 deep'],
    ['a'.repeat(65_537), 'more than 65536 characters'],
  ])('%j: %s', (text, problem) => {
    expect(() => new TextTemplate(text)).toThrow(problem)
  })
})

describe('a template that fails says why', () => {
  it.each([
    ['{{ .Label }}', "can't evaluate field Label"],
    ['{{ .Value.x }}', "can't evaluate field x in type float64"],
    ['{{ humanize "a" }}', "error calling humanize: can't convert string to float: a"],
    ['{{ first (query "none") }}', 'first() called on vector with no elements'],
    ['{{ label "a" 1 }}', 'wrong type for value; expected *template.sample; got int'],
    ['{{ eq 1 1.0 }}', 'incompatible types for comparison'],
    ['{{ index (query "up") 3 }}', 'index out of range: 3'],
    ['{{ reReplaceAll "(" "" "" }}', 'error calling reReplaceAll: error parsing regexp'],
    ['{{ title }}', 'wrong number of args for title: want 1 got 0'],
    ['{{ parseDuration "soon" }}', 'not a valid duration string: "soon"'],
    ['{{ range 5.0 }}{{ end }}', "range can't iterate over 5"],
    ['{{ template "x" }}', 'template "x" not defined'],
    ['{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}', 'templates are more than 100 deep in each other'],
    ['{{ printf "%99999d" 1 }}', 'printf takes a width of at most 1000'],
    [`{{ $x := "${'y'.repeat(1000)}" }}${'{{ $x }}'.repeat(70)}`, 'its text has more than 65536 characters'],
  ])('%j: %s', (text, problem) => {
    expect(() => executed(text)).toThrow(problem)
  })
})

describe('a template has a bound for its work', () => {
  const many = Array.from({ length: 50_000 }, (_, index) => ({ Labels: new Map([['i', String(index)]]), Value: index }))
  const withMany = { ...surroundings, query: () => many }
  const long = { ...data, labels: new Map([['x', 'a'.repeat(1_000)]]) }
  const doubled = (first: string, next: string): string => `{{ $x := ${first} }}${`{{ $x = ${next} }}`.repeat(40)}`

  it.each([
    ['ranges without anything in them', '{{ range query "m" }}{{ range query "m" }}{{ end }}{{ end }}'],
    ['lists that are sorted', '{{ $m := query "m" }}{{ $m = sortByLabel "i" $m }}'],
    ['lists that are printed', '{{ query "m" }}'],
    ['lists as texts', '{{ $x := print (query "m") }}'],
    ['lists that are looked through', '{{ $m := query "m" }}{{ range $m }}{{ $x := first $m }}{{ end }}'],
    ['lists within lists', `${doubled('args 1 2', 'args $x $x')}{{ print $x }}`],
    ['long texts', '{{ range query "m" }}{{ $x := title (html $labels.x) }}{{ end }}'],
    ['regular expressions', '{{ range query "m" }}{{ $x := match "(a?){90}a{90}" $labels.x }}{{ end }}'],
    ['many regular expressions', '{{ range query "m" }}{{ $x := match (print "a{900}" .Value) "" }}{{ end }}'],
  ])('%s', (_what, text) => {
    expect(() => new TextTemplate(text).execute(long, withMany)).toThrow('it takes more than 20000 steps')
  })

  it.each([
    [doubled('"0123456789"', 'print $x $x'), 'its text has more than 65536 characters'],
    ['{{ reReplaceAll "a" (printf "%100s" "b") $labels.x }}', 'its text has more than 65536 characters'],
    ['{{ match "(a{50}){50}" "a" }}', 'more than 1000 characters, with what it repeats'],
    [`{{ match "${'a'.repeat(1_001)}" "a" }}`, 'a regular expression has 1001 characters'],
  ])('%.60s: %s', (text, problem) => {
    expect(() => new TextTemplate(text).execute(long, withMany)).toThrow(problem)
  })

  it('that is enough for a few thousand series', () => {
    const text = '{{ range query "m" }}{{ if gt .Value 1.0 }}{{ .Labels.i }} {{ end }}{{ end }}'
    const some = { ...surroundings, query: () => many.slice(0, 2_000) }
    expect(new TextTemplate(text).execute(data, some)).toHaveLength(8_886)
  })
})

it('has what promtool 2.42 cannot show', () => {
  expect(executed('{{ externalURL }} {{ pathPrefix }} {{ $externalURL }} {{ now }}')).toBe(
    'https://mon.example/c/ /c/ https://mon.example/c/ 1.5',
  )
})

it('looks at no operand after the one that decides, and at what a pipe hands over last', () => {
  const failing = '(first (query "none"))'
  expect(executed(`{{ or 1 ${failing} }} {{ and 0 ${failing} }}`)).toBe('1 0')
  expect(executed('{{ 5 | and 1 }} {{ 5 | and 0 }} {{ 5 | or 0 }} {{ 5 | or 1 }} {{ 5 | or }}')).toBe('5 0 5 1 5')
})

it('of any text makes a template or a TemplateError', () => {
  const part = fc.constantFrom(
    '{{',
    '}}',
    '-',
    ' ',
    'if',
    'end',
    'else',
    'range',
    '$x',
    ':=',
    '.',
    'Labels',
    '|',
    '(',
    ')',
    '"',
    'a',
    '1',
    'printf',
    '%v',
    'query',
    'define',
    'template',
    'block',
    'break',
    '"x"',
    '`',
    "'",
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
      try {
        executed(parts.join(''))
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error
      }
    }),
    { numRuns: 2_000 },
  )
})
