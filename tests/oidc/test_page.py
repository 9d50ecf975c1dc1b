from loadstone.oidc.page import read_page

LOGIN = '<form action="/yes"><input name="username"><input type="password" name="p"></form>'


def test_a_form_is_counted_as_the_engine_counts_it() -> None:
    pages = {
        LOGIN: 0,
        f'<!-- <form action="/no"> -->\n{LOGIN}': 1,
        f'<script>var form = "<form>";</script>\n<FORM action="/search"></FORM> {LOGIN}': 2,
        f"<formula></formula>{LOGIN}": 0,
    }
    for page, number in pages.items():
        form = read_page(page).login
        assert form is not None
        assert (form.number, form.action) == (number, "/yes")
