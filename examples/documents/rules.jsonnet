{
  type: 'http',
  url: 'http://127.0.0.1:8765/label',
  key_variable: 'RULES_KEY',
  cost: 0.002,
  per_minute: 3000,
}
