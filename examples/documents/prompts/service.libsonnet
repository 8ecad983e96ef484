// A chat completions service, and what to do with its answers. `prompt` gets the fields of each item as ${name}.
{
  url:: 'http://127.0.0.1:8766/v1/chat/completions',
  asked(prompt, cost): {
    type: 'command',
    command: ['python', 'examples/documents/http_client.py', $.url],
    each: 'item',
    body: { model: 'small', temperature: 0, messages: [{ role: 'user', content: prompt }] },
    answer: 'choices.0.message.content',
    labels: { Positive: 'positive', Negative: 'negative', Neutral: 'neutral' },
    cost: cost,
  },
}
